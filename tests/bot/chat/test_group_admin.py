from __future__ import annotations

import pytest
from msgspec.structs import replace

from bot.chat.group_admin import GroupAdmin
from bot.core.conversation import Conversation
from bot.core.errors import ActionUnanswered, ActionUnsupported, NotConnected
from bot.core.group_admin import GroupAct, Mute, Pin, Recall, SetCard
from bot.core.language import Language
from bot.core.ports import Member
from frostagent.types.errors import InvalidArguments, ToolDenied, ToolFailed
from frostagent.types.runs import Asker
from frostagent.types.suspension import Suspend
from frostagent.types.tools import ToolContext
from tests.cases import each_case
from tests.fakes import BOT, GROUP, RecordingTransport, said, tool_context

ADMIN, MING = 7, 8


def chair(*known: str, language: Language = Language.CHINESE) -> tuple[GroupAdmin, RecordingTransport, ToolContext]:
    messages = [replace(said(text, user=MING), message_id=text) for text in known]
    transport = RecordingTransport(messages)
    roles = {BOT: Member("admin"), ADMIN: Member("admin"), MING: Member("member")}
    transport.members = {(GROUP, user_id): member for user_id, member in roles.items()}
    context = replace(tool_context(), conversation=str(GROUP), asker=Asker(str(ADMIN)))
    group_admin = GroupAdmin(transport, name=lambda _, user_id: f"名\n{user_id}", language=language)
    return group_admin, transport, context


@each_case(
    ("act", "words", "english"),
    [
        (Mute(MING, 60), "禁言 名 8(8) 60 秒", "mute 名 8(8) for 60 s"),
        (Mute(MING, 0), "解除 名 8(8) 的禁言", "unmute 名 8(8)"),
        (SetCard(MING, "静"), "把 名 8(8) 的群名片改成「静」", "change the card of 名 8(8) to 「静」"),
        (SetCard(MING, ""), "清除 名 8(8) 的群名片", "remove the card of 名 8(8)"),
        (Recall("早"), "撤回 名 8(8) 的消息「早」", "recall 名 8(8)'s message 「早」"),
        (Pin("早"), "把 名 8(8) 的消息设为精华「早」", "pin 名 8(8)'s message 「早」"),
    ],
)
async def test_whoever_is_asked_reads_what_is_done_to_whom_and_where(act: GroupAct, words: str, english: str) -> None:
    abroad, _, here = chair("早", language=Language.ENGLISH)
    assert await abroad.permit(here, act) == f"Group {GROUP.session_id}: {english}"
    chairing, transport, context = chair("早")
    assert await chairing.permit(context, act) == f"群 {GROUP.session_id}：{words}"
    with pytest.raises(Suspend, match="群 "):
        await chairing.act(context, act)
    assert transport.acts == []  # nobody has said yes, whichever tool wants it
    await chairing.act(replace(context, allowed=True), act)
    assert transport.acts == [(GROUP, act)]
    transport.members[GROUP, ADMIN] = Member("member")  # of an admin who is none any more
    with pytest.raises(ToolDenied):
        await chairing.act(replace(context, allowed=True), act)
    assert transport.acts == [(GROUP, act)]


async def test_a_message_of_another_chat_or_none_and_a_role_that_is_too_low_are_refused() -> None:
    chairing, transport, context = chair("早")
    with pytest.raises(InvalidArguments):
        await chairing.permit(context, Recall("晚"))
    transport.known["早"] = replace(transport.known["早"], conversation=Conversation(BOT, "group", 1))
    with pytest.raises(InvalidArguments):
        await chairing.permit(context, Pin("早"))
    transport.members[GROUP, BOT] = Member("member")
    with pytest.raises(ToolDenied):
        await chairing.permit(context, Mute(MING, 60))


async def test_what_the_server_says_against_it_is_told() -> None:
    chairing, transport, context = chair("早")
    transport.member_failures = [NotConnected("away"), ActionUnanswered("slow")]
    for told in ("it was not done: away", "nothing was done"):
        with pytest.raises(ToolFailed, match=told):
            await chairing.permit(context, Mute(MING, 60))
    unsupported = ActionUnsupported("set_essence_msg", retcode=1404, wording="不支持的Api")
    transport.failures = [unsupported, ActionUnanswered("slow")]
    for told in ("it was not done: set_essence_msg", "may have been done"):
        with pytest.raises(ToolFailed, match=told):
            await chairing.act(replace(context, allowed=True), Pin("早"))


async def test_an_act_that_nobody_confirmed_is_done_where_qq_shows_that_it_was() -> None:
    class Recalling(RecordingTransport):
        async def act(self, group: Conversation, act: GroupAct) -> bool:
            if isinstance(act, Recall) and act.message_id != "晚":
                self.known.pop(act.message_id)
            raise ActionUnanswered("QQ did not confirm in time")

    group_admin, transport, context = chair("早", "晚")
    slow = Recalling(transport.known.values())
    slow.members = transport.members
    group_admin = GroupAdmin(slow, name=lambda _where, _user: "名")
    allowed = replace(context, allowed=True)
    assert await group_admin.act(allowed, Recall("早"))
    for act in (Recall("晚"), Mute(MING, 60)):
        with pytest.raises(ToolFailed, match="may have been done"):
            await group_admin.act(allowed, act)


async def test_whether_the_server_would_have_said_no_is_passed_on() -> None:
    chairing, transport, context = chair("早")
    told = []
    for transport.tells in (True, False):
        told.append(await chairing.act(replace(context, allowed=True), Mute(MING, 60)))
    assert told == [True, False]
