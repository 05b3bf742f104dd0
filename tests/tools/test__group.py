from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from bot.core.conversation import Conversation
from bot.core.group_admin import Chair, GroupAct, Mute, Pin, Recall, SetCard, Topic
from bot.core.ports import Members
from frostagent.engine.tool_execution import run_body
from frostagent.types.errors import InvalidArguments
from frostagent.types.suspension import Suspend
from frostagent.types.tools import Tool, ToolContext
from tests.cases import each_case
from tests.fakes import tool_context
from tools._group import mute_member, pin_message, recall_message, set_card


class Office:
    def __init__(self, *, tells: bool = True) -> None:
        self.done: list[GroupAct] = []
        self._tells = tells

    async def act(self, context: ToolContext, act: GroupAct) -> bool:
        if not context.allowed:
            raise Suspend(f"asks {act.type}", seconds=60)
        self.done.append(act)
        return self._tells


class Roll:
    def number(self, conversation: Conversation, user_id: int) -> int:
        return 2

    def user_id(self, conversation: Conversation, number: int, name: str = "") -> int | None:
        return {2: 20002}.get(number)


async def use(used: Tool, *, allowed: bool = True, quotes: str = "9", **given: Any) -> list[GroupAct]:
    office = Office()
    context = tool_context({Chair: office, Topic: Topic(quotes), Members: Roll()})
    await run_body(used, replace(context, allowed=allowed), dict(used.validate(given).arguments))
    return office.done


async def test_each_is_done_to_whom_a_number_or_a_quote_names_once_it_is_allowed() -> None:
    assert await use(mute_member, who="小明#2", seconds=60) == [Mute(20002, 60)]
    assert await use(set_card, who="#2", card=" 静\u200b 静 ") == [SetCard(20002, "静 静")]
    assert await use(recall_message) == [Recall("9")]
    assert await use(pin_message) == [Pin("9")]
    with pytest.raises(Suspend, match="asks mute"):
        await use(mute_member, who="#2", seconds=60, allowed=False)


@each_case(
    ("used", "given"),
    [
        (mute_member, {"who": "20002", "seconds": 60}),
        (mute_member, {"who": "小明", "seconds": 60}),
        (mute_member, {"who": "#2", "seconds": 30 * 86_400}),
        (mute_member, {"who": "#2", "seconds": -1}),
        (set_card, {"who": "#2", "card": "长" * 21}),
        (recall_message, {"quotes": ""}),
        (pin_message, {"quotes": ""}),
    ],
)
async def test_nobody_else_and_nothing_else_is_meant(used: Tool, given: dict[str, Any]) -> None:
    with pytest.raises(InvalidArguments):
        await use(used, **given)


async def test_where_the_server_cannot_say_no_the_model_reads_that_it_was_submitted() -> None:
    told = []
    for tells in (True, False):
        office = Office(tells=tells)
        context = tool_context({Chair: office, Topic: Topic("9"), Members: Roll()})
        given = dict(mute_member.validate({"who": "#2", "seconds": 60}).arguments)
        told.append(str(await run_body(mute_member, replace(context, allowed=True), given)))
    assert "done" in told[0]
    assert "submitted" not in told[0]
    assert "submitted: the OneBot server does not say" in told[1]
