from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest

from bot.core.actions import SendMessage
from bot.core.conversation import Conversation
from bot.core.errors import ActionRefused, ActionUnanswered, AlreadySaid
from bot.memory.history import History
from bot.outbox.delivery import Delivery
from bot.outbox.turn_speaker import TurnSpeaker
from bot.prompt.frame_removal import FrameRemover
from bot.prompt.participants import Participants
from frostagent.engine.budget import Budget, Limits
from frostagent.types.errors import InvalidArguments, ToolDenied
from frostagent.types.messages import AssistantMessage, ToolCall, ToolMessage, UserMessage
from frostagent.types.runs import Asker, Stop
from frostagent.types.speech import (
    Attachment,
    Confirmed,
    Face,
    Mention,
    MentionAll,
    Quote,
    Refused,
    SendSegment,
    Text,
    Unknown,
)
from frostagent.types.suspension import Allow, Decision, Deny
from frostagent.types.tools import tool
from tests.bot.chat.test_turn import OWNER, living, speak
from tests.bot.outbox.post import Looking, build_outbox
from tests.cases import each_case
from tests.fakes import (
    BOT,
    GROUP,
    ManualClock,
    RecordingStore,
    RecordingTransport,
    calls,
    said,
    words,
)

CAT, DOG = Attachment("image", "base64://cat"), Attachment("image", "base64://dog")
FIVE = Limits(sends=5)
LONGER = "北京明天多云转晴，最高 25 度，出门不用带伞。"
SHORTER = "北京明天多云转晴，最高 25 度，不用带伞。"


@asynccontextmanager
async def speaking(
    *, limits: Limits = FIVE, frames: FrameRemover | None = None
) -> AsyncIterator[tuple[TurnSpeaker, RecordingTransport]]:
    transport, store, clock = RecordingTransport(), RecordingStore(), ManualClock()
    outbox, _ = build_outbox(transport, store, clock)
    delivery = Delivery(outbox=outbox, history=History(store=store), clock=clock, limit=20)
    asker = Asker("999", is_owner=True)
    async with asyncio.timeout(30), outbox.open():
        yield TurnSpeaker(delivery, "t1", asker, GROUP, frames or FrameRemover(), Budget(limits)), transport


@each_case(
    ("first", "second"),
    [
        ((Text("北京今天晴"),), (Text("北京今天晴"),)),
        ((Text("北京今天晴"),), (Text(" 北京  今天晴！😊\n"),)),
        ((Text("北京今天晴"),), (Quote("7"), Text("北京今天晴"))),
        ((Text("好"),), (Text("好的"[:1]),)),
        ((CAT,), (CAT,)),
        ((Text("看"), CAT), (Text("看"), CAT)),
        ((Text("看"), CAT), (CAT,)),
        ((Text("看"), CAT), (Text("看"),)),
        ((CAT, DOG), (DOG,)),
    ],
)
async def test_what_was_said_is_not_sent_again(first: tuple[SendSegment, ...], second: tuple[SendSegment, ...]) -> None:
    async with speaking() as (speaker, transport):
        await speaker.say(first)
        with pytest.raises(AlreadySaid):
            await speaker.say(second)
        assert len(transport.sent) == 1
        assert speaker.budget.spent.sends == 1


@each_case(
    ("first", "second"),
    [
        ((Text("看"), CAT), (Text("看"), DOG)),
        ((CAT,), (DOG,)),
        ((CAT,), (Text("这是猫"), CAT)),
        ((CAT,), (CAT, DOG)),
        ((CAT,), (Attachment("file", "base64://cat"),)),
        ((Mention("2"), Text("你好")), (Mention("3"), Text("你好"))),
        ((Mention("2"),), (MentionAll(),)),
        ((Face("1"),), (Face("2"),)),
        ((Text("北京今天晴"),), (Text("上海今天晴"),)),
        ((Text("👍"),), (Text("👎"),)),
    ],
)
async def test_what_is_new_in_any_part_is_sent(first: tuple[SendSegment, ...], second: tuple[SendSegment, ...]) -> None:
    async with speaking() as (speaker, transport):
        await speaker.say(first, allowed=True)
        await speaker.say(second, allowed=True)
        assert len(transport.sent) == 2


async def test_the_words_of_a_run_go_on_in_each_chat_side_by_side_too_and_over_a_restart() -> None:
    """Of a run that waited over a restart the words in its own chat are kept."""
    elsewhere = Conversation(BOT, "group", 5555)
    async with speaking() as (speaker, _):
        await asyncio.gather(*(speaker.say((Text(text),)) for text in ("一", "二")))
        await speaker.say((Text("三"),), session=str(elsewhere), allowed=True)
        assert speaker.trail(GROUP) == ["一", "二"]
        assert speaker.trail(elsewhere) == ["三"]
        again = TurnSpeaker(speaker.delivery, "t1", speaker.asker, GROUP)
        again.said += speaker.said
        assert again.trail(GROUP) == ["一", "二"]
        await again.say((Text("四"),))
        assert again.trail(GROUP) == ["一", "二", "四"]
        assert again.trail(elsewhere) == []


async def test_what_is_said_beside_something_else_goes_on_from_it_before_qq_has_answered() -> None:
    async with speaking() as (speaker, transport):

        class Early(Looking):
            def __call__(self, actions: Sequence[SendMessage], earlier: str = "", /) -> tuple[SendMessage, ...]:
                assert not transport.sent
                return super().__call__(actions, earlier)

        speaker.delivery._outbox.screen = looking = Early()
        await asyncio.gather(*(speaker.say((Text(text),)) for text in ("一", "二")))
        assert [text for text in looking.earlier if text] == ["一"]


async def test_final_words_that_call_the_same_people_were_said_and_others_were_not() -> None:
    async with speaking() as (speaker, _):
        await speaker.say((Text("@小明#1 **你好**"),))
        await speaker.say((Text("只对别处说"),), session=f"{BOT}:group:5555", allowed=True)
        assert speaker.has_said("@小明#1 **你好**")
        assert not speaker.has_said("@小红#2 **你好**")
        assert not speaker.has_said("只对别处说")


async def test_final_words_that_leave_a_few_out_were_said_and_are_as_sure_as_those() -> None:
    for failures, is_sure in (([], True), ([ActionUnanswered("?")], False)):
        async with speaking() as (speaker, transport):
            transport.failures = [*failures]
            await speaker.say((Text(LONGER),))
            assert speaker.has_said(SHORTER)
            assert speaker.is_sure_of(SHORTER) is is_sure


async def test_a_quote_of_nothing_in_particular_is_of_the_question_and_of_nothing_elsewhere() -> None:
    async with speaking() as (speaker, transport):
        speaker.question = "42"
        await speaker.say((Quote(""), Text("one")))
        await speaker.say((Quote(""), Text("two")), session="10001:group:5555", allowed=True)
        speaker.question = ""
        await speaker.say((Quote(""), Text("three")))
    assert [action.segments for action in transport.sent] == [
        (Quote("42"), Text("one")),
        (Text("two"),),
        (Text("three"),),
    ]


async def test_the_same_for_another_chat_is_no_repetition_but_counts() -> None:
    async with speaking(limits=Limits(sends=3)) as (speaker, transport):
        await speaker.say((Text("开会了"),))
        for group in (5555, 6666):
            await speaker.say((Text("开会了"),), session=f"{BOT}:group:{group}", allowed=True)
        with pytest.raises(AlreadySaid):
            await speaker.say((Text("开会了！"),), session=f"{BOT}:group:5555", allowed=True)
        with pytest.raises(ToolDenied, match="3 messages"):
            await speaker.say((Text("散会了"),))
        assert [action.conversation.session_id for action in transport.sent] == [GROUP.session_id, 5555, 6666]
        assert speaker.said == ["开会了"]


async def test_the_same_at_the_same_time_is_sent_once_and_never_more_than_may_be() -> None:
    async with speaking() as (speaker, transport):
        texts = [*["一样的话"] * 10, *(f"第 {number} 句" for number in range(20))]
        results = await asyncio.gather(*(speaker.say((Text(text),)) for text in texts), return_exceptions=True)
        assert [type(each) for each in results] == [
            tuple, *[AlreadySaid] * 9, *[tuple] * 4, *[ToolDenied] * 16,
        ]  # fmt: skip
        assert transport.texts == ["一样的话", "第 0 句", "第 1 句", "第 2 句", "第 3 句"]


async def test_what_takes_several_messages_counts_as_so_many_and_is_sent_whole_or_not_at_all() -> None:
    async with speaking(limits=Limits(sends=3)) as (speaker, transport):
        await speaker.say((Text("one"),))
        with pytest.raises(ToolDenied, match="would be 3 messages in QQ, and 2 more"):
            await speaker.say((Text("x" * 41),))
        assert transport.texts == ["one"]
        await speaker.say((Text("y" * 40),))
        assert len(transport.texts) == 3
        assert speaker.budget.sends_left == 0


async def test_what_was_refused_may_be_said_again_what_is_uncertain_may_not() -> None:
    async with speaking() as (speaker, transport):
        transport.failures = [ActionRefused("send", retcode=1, wording="no")]
        assert isinstance((await speaker.say((Text("好的"), CAT)))[0], Refused)
        transport.failures = [ActionUnanswered("?")]
        assert isinstance((await speaker.say((Text("好的"), CAT)))[0], Unknown)
        with pytest.raises(AlreadySaid):
            await speaker.say((Text("好的"),))
        assert speaker.said == ["好的"]
        assert speaker.budget.spent.sends == 2


async def test_words_that_were_refused_may_be_sent_again() -> None:
    async with speaking() as (speaker, transport):
        transport.failures = [ActionRefused("send", retcode=1, wording="no")]
        await speaker.say((Text("好的，我看看"),))
        await speaker.say((Text("好的，我看看"),))
        assert transport.texts == ["好的，我看看"]


async def test_a_refusal_takes_back_only_what_was_new_in_it() -> None:
    async with speaking() as (speaker, transport):
        assert isinstance((await speaker.say((CAT,)))[0], Confirmed)
        transport.failures = [ActionRefused("send", retcode=1, wording="no")]
        await speaker.say((Text("两只"), CAT, DOG))
        with pytest.raises(AlreadySaid):
            await speaker.say((CAT,))
        await speaker.say((DOG,))
        assert len(transport.sent) == 2


async def test_what_an_earlier_segment_of_the_run_said_is_known() -> None:
    async with speaking() as (speaker, transport):
        speaker.said += ["北京今天晴", ""]
        with pytest.raises(AlreadySaid):
            await speaker.say((Text("北京今天晴。"),))
        await speaker.say((CAT,))
        assert len(transport.sent) == 1


async def test_the_frame_is_cut_out_of_whatever_is_sent() -> None:
    frames = FrameRemover(("小霜",), 10001, Participants.of([UserMessage("小明(777): hi")]))
    async with speaking(frames=frames) as (speaker, transport):
        await speaker.say((Text("小霜(10001): 好的\n小明(777): 谢谢"),))
        with pytest.raises(InvalidArguments, match="your own words"):
            await speaker.say((Text("小明(777): 谢谢"),))
        with pytest.raises(AlreadySaid):
            await speaker.say((Text("小霜: 好的"),))
        assert await speaker.say((Text("  "),)) == ()
        await speaker.say((Text("(已用 send_message 回答)"), CAT))
        assert [action.segments[-1] for action in transport.sent] == [Text("好的"), CAT]


# --- in a turn --------------------------------------------------------------------------------------


async def test_the_model_is_told_of_a_repetition_without_an_error_and_its_last_words_are_judged_too() -> None:
    async with living(calls(speak("北京今天晴")), calls(speak("北京今天晴！")), words("北京今天晴。")) as house:
        await house.turns.answer(said("天气"))
    result = house.model.requests[2].messages[-1]
    assert isinstance(result, ToolMessage)
    assert not result.is_error
    assert result.content.startswith("not sent, since this was said already in this run")
    assert house.transport.texts == ["北京今天晴"]


async def test_a_sixth_message_is_an_error_and_the_answer_is_still_said() -> None:
    steps = [calls(speak(f"第 {number} 条")) for number in range(7)]
    async with living(*steps, words("总结完毕"), limits=FIVE) as house:
        await house.turns.answer(said("说七句"))
    assert house.transport.texts == [*(f"第 {number} 条" for number in range(5)), "总结完毕"]
    results = [m for m in house.model.requests[-1].messages if isinstance(m, ToolMessage)]
    assert [result.is_error for result in results] == [False] * 5 + [True] * 2
    assert "all it may before its final answer" in results[-1].content


async def test_a_leak_is_neither_sent_nor_kept_in_words_or_calls() -> None:
    leaking = AssistantMessage("小明(777): 在", (ToolCall("c1", *speak("Frost(10001): 等一下")),))
    step = calls(speak("x"))
    step = type(step)(leaking, step.finish)
    async with living(step, words("Frost: 好了\n小明(777): 谢谢")) as house:
        await house.turns.answer(said("hi"))
        (closed,) = house.store.of("turn_closed")
    assert house.transport.texts == ["等一下", "好了"]
    told = house.history.messages(GROUP)[1:]
    assert [m.text for m in told if isinstance(m, AssistantMessage)] == ["", "好了"]
    called = told[0]
    assert isinstance(called, AssistantMessage)
    sent = {"messages": [{"type": "plain", "text": "等一下"}]}
    assert json.loads(called.tool_calls[0].arguments) == sent
    assert [str(entry) for entry in house.store.entries if "(777): 在" in str(entry)] == []
    assert closed in house.store.entries


@each_case("leak", ["小明(777): hello out there", "(noted)", "[提问] 消息号 7\n小明(777): hi", "hello out there?"])
async def test_nothing_but_a_leak_is_asked_again_once_behind_examples(leak: str) -> None:
    async with living(words(leak), words("here I am")) as house:
        await house.turns.answer(said("hello out there"))
    assert house.transport.texts == ["here I am"]
    first, second = (list(request.messages) for request in house.model.requests)
    assert (second[0], second[-1]) == (first[0], first[-1])
    assert [type(one) for one in second[len(first) - 1 : -1]] == [UserMessage, AssistantMessage] * 3  # examples


CODES = "at 的写法是 [CQ:at,qq=QQ号]，图片是 [CQ:image,file=xx]。"


@each_case("asked", ["CQ码里 at 和图片怎么写", "which CQ codes are there?", "[CQ:at,qq=1] 是什么"])
async def test_cq_codes_that_are_explained_to_who_asks_stay(asked: str) -> None:
    async with living(calls(speak(f"等等，{CODES}")), words(f"全员是 [CQ:at,qq=all]，{CODES}")) as house:
        await house.turns.answer(said(asked))
    assert house.transport.texts == [f"等等，{CODES}", f"全员是 [CQ:at,qq=all]，{CODES}"]
    last = house.history.messages(GROUP)[-1]
    assert isinstance(last, AssistantMessage)
    assert last.text.endswith(CODES)


async def test_they_are_cut_where_nobody_speaks_of_them() -> None:
    async with living(calls(speak(f"等等，{CODES}")), words(f"全员是 {CODES}")) as house:
        await house.turns.answer(said("怎么写 at？"))
    assert house.transport.texts == ["等等，at 的写法是 ，图片是 。", "全员是 at 的写法是 ，图片是 。"]


async def test_nothing_but_leaks_twice_is_one_polite_line() -> None:
    async with living(words("小明(777): hi"), words("小明(777): hi")) as house:
        await house.turns.answer(said("hi"))
        (closed,) = house.store.of("turn_closed")
    assert len(house.model.requests) == 2
    assert house.transport.texts == ["抱歉，这次没能回答上来，请稍后再试。（编号 t1）"]
    assert getattr(closed, "stop", None) is Stop.FAILED


async def test_bookkeeping_said_back_after_a_message_is_silence() -> None:
    async with living(calls(speak("好的")), words("(已用 send_message 回答)"), words("嗯")) as house:
        await house.turns.answer(said("hi"))
        await house.turns.answer(said("再来"))
    assert house.transport.texts == ["好的", "嗯"]
    shown = house.model.requests[-1].messages
    assert [m.text for m in shown if isinstance(m, AssistantMessage)] == [""]
    assert isinstance(shown[-2], ToolMessage)


# --- elsewhere ----------------------------------------------------------------------------------------


@tool(audience="owner")
def for_owners() -> str:
    """Does what only owners may have done."""
    return "done"


async def test_nobody_but_an_owner_reaches_another_conversation() -> None:
    async with living(calls(speak("psst", session=f"{BOT}:group:5555")), words("done")) as house:
        await house.turns.answer(said("tell them"))
    assert (house.transport.texts, house.asked) == (["done"], [])
    result = house.model.requests[1].messages[-1]
    assert isinstance(result, ToolMessage)
    assert result.content.endswith("[TOOL_DENIED]")


@each_case(("word", "sent"), [(Allow(), ["psst", "done"]), (Deny("no"), ["done"])])
async def test_what_an_owner_has_sent_elsewhere_waits_for_his_word(word: Decision, sent: list[str]) -> None:
    async with living(calls(speak("psst", session=f"{BOT}:group:5555")), words("done")) as house:
        await house.turns.answer(said("tell them", user=OWNER))
        assert house.transport.texts == []
        assert house.asked == ["#A1 send_message: 发到群 5555：psst  同意 A1 / 拒绝 A1"]
        await house.turns.resume("t1", {"c0": word})
    assert house.transport.texts == sent


async def test_words_of_others_that_came_while_a_run_waited_count_when_it_goes_on() -> None:
    elsewhere = speak("psst", session=f"{BOT}:group:5555")
    async with living(calls(elsewhere), words("hi"), calls(("for_owners", "{}")), words("done")) as house:
        house.toolset.register(for_owners)
        await house.turns.answer(said("tell them", user=OWNER))
        await house.turns.answer(said("call for_owners", user=777))
        await house.turns.resume("t1", {"c0": Allow()})
    result = house.model.requests[-1].messages[-1]
    assert isinstance(result, ToolMessage)
    assert "must be allowed by somebody" in result.content


@each_case("user_id", ["", "ann", "1" * 30])
async def test_nobody_is_mentioned_who_has_no_account(user_id: str) -> None:
    async with speaking() as (speaker, transport):
        with pytest.raises(InvalidArguments, match="no account"):
            await speaker.say((Mention(user_id), Text("早")))
        assert transport.sent == []
