"""Who may say stop, and to what."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from msgspec.structs import replace

from bot.chat.cancellation import Reason
from bot.chat.stop_handler import HEARD
from bot.core.actions import React, SendMessage
from bot.core.errors import NotConnected
from bot.core.events import MessageReceived
from bot.core.journal import MessageErased, MessageObserved, SendChanged, SendState, TurnClosed
from bot.policy.wake import Rules, Silence
from bot.prompt import render
from bot.prompt.wording_zh import ZH
from frostagent.cancellation import BROKEN
from frostagent.types.messages import UserMessage
from frostagent.types.runs import Stop
from frostagent.types.speech import Quote, Text
from frostagent.types.tools import tool
from tests.bot.hall import Hall, hall
from tests.cases import each_case
from tests.e2e.test_suspended_turns import ask_first
from tests.fakes import BOT, GROUP, Step, calls, said, until, words

OWNER = 999
RULES = Rules(names=("小霜",), owners=frozenset({OWNER}))


@asynccontextmanager
async def hanging(*after: Step, steers: bool = True) -> AsyncIterator[Hall]:
    """小明 has asked, and a tool hangs."""
    begun = asyncio.Event()

    @tool(side_effects="external")
    async def hang() -> str:
        """Never comes back."""
        begun.set()
        await asyncio.Event().wait()
        return "never"

    async with hall(calls(("hang", "")), *after, rules=RULES, steers=steers) as house:
        house.toolset.register(hang)
        async with house.gestures.open():
            await house.dispatcher.handle(said("go", message_id="q1"))
            await begun.wait()
            yield house
        for live in house.live.at(GROUP):  # it was not stopped
            live.stop(Reason.STOPPED)
        await house.lanes.wait_idle()


@each_case(
    "stop",
    [
        said("/stop", at=False, message_id="s"),
        said("停", message_id="s"),
        said("小霜，别说了", at=False, message_id="s"),
        said("停止", user=5, role="admin", message_id="s"),
        said("停", user=OWNER, message_id="s"),
    ],
)
async def test_a_run_ends_at_the_word_of_its_asker_an_admin_or_an_owner(stop: MessageReceived) -> None:
    async with hanging(words("next")) as house:
        await house.take(stop)
        (closed,) = house.store.of("turn_closed")
        assert isinstance(closed, TurnClosed)
        assert (closed.stop, closed.error) == (Stop.STOPPED, "")
        assert [message.type for message in closed.round] == ["user", "assistant", "tool", "user"]
        assert closed.round[-1] == render.history_note(ZH, ZH.about.stopped)
        assert house.transport.texts == []
        await until(lambda: house.transport.gestures == [React(GROUP, "s", HEARD)])
        known = [entry.message for entry in house.store.entries if isinstance(entry, MessageObserved)]
        assert stop in known  # told once more, after a restart, it is no question
        assert MessageErased(GROUP, "s") in house.store.entries
        await house.take(said("and now?", message_id="q2"))
        assert house.transport.texts == ["next"]
        (before,) = [message for message in house.model.requests[-1].messages if "and now" in str(message)]
        assert "/stop" not in str(before)


async def test_a_word_that_the_server_tells_late_meant_something_else() -> None:
    async with hanging() as house:
        house.late.preload([], [])
        for age in (122, 120):
            assert not house.store.of("turn_closed")
            stop = said("停", message_id=str(age))
            await house.dispatcher.handle(replace(stop, time=stop.time - age))
        assert [entry.reason for entry in house.verdicts][1:] == [Silence.LATE]
        await house.lanes.wait_idle()
        (closed,) = house.store.of("turn_closed")
        assert isinstance(closed, TurnClosed)
        assert (closed.stop, closed.error) == (Stop.STOPPED, "")


@each_case(
    "stop",
    [
        said("停", user=5, message_id="s"),
        said("/stop", user=5, message_id="s"),
        said("/stop", at=False, user=OWNER, message_id="s"),
        said("/stop all", message_id="s"),
        said("停", at=False, message_id="s"),
    ],
)
async def test_a_strangers_word_or_one_to_nobody_stops_nothing(stop: MessageReceived) -> None:
    async with hanging() as house:
        await house.dispatcher.handle(stop)
        assert not any(live.cancelled for live in house.live.at(GROUP))
        assert house.transport.gestures == []
        assert not house.lanes.at(GROUP)[1:]


async def test_a_quote_of_the_bots_words_says_who_is_meant() -> None:
    async with hanging() as house:
        house.history.know(said("hello", user=BOT, message_id="9"))
        await house.take(said((Quote("9"), Text("停")), at=False, message_id="s"))
        assert [turn.stop for turn in house.store.of("turn_closed") if isinstance(turn, TurnClosed)] == [Stop.STOPPED]


async def test_where_nothing_goes_on_a_stop_is_talk() -> None:
    async with hall(words("fine"), rules=RULES) as house:
        await house.take(said("停", message_id="q1"))
        assert house.transport.texts == ["fine"]
        await house.take(said("/stop", at=False, message_id="s"))
        assert [message.message_id for message in house.history.take_overheard(GROUP)] == ["s"]


async def test_a_run_that_waits_for_a_word_is_over_and_whoever_was_asked_is_told() -> None:
    async with hall(calls(("ask_first", "")), rules=RULES) as house:
        house.toolset.register(ask_first)
        await house.take(said("please", message_id="q1"))
        await house.take(said("停", message_id="s"))
        assert house.suspensions.waiting() == {}
        assert house.asked[-1] == "A1 不用管了：提问已经撤回或结束，没有做。"
        (closed,) = house.store.of("turn_closed")
        assert isinstance(closed, TurnClosed)
        assert [message.type for message in closed.round] == ["user", "assistant", "tool", "user"]
        assert house.store.of("run_resumed")


async def test_after_a_stop_no_line_is_swallowed() -> None:
    async with hanging(words("the next")) as house:
        await house.dispatcher.handle(said("read before", message_id="1"))
        await house.dispatcher.handle(said("停", message_id="s"))
        await house.take(said("and now?", message_id="q2"))
        assert house.transport.texts == ["the next"]
        asked = house.model.requests[-1].messages[-1]
        assert isinstance(asked, UserMessage)
        assert "read before" in asked.text.partition("[提问 ")[0]
        assert "and now?" in asked.text.partition("[提问 ")[2]


async def test_all_of_it_is_for_admins_and_empties_the_lane() -> None:
    async with hanging() as house:
        await house.dispatcher.handle(said("me, too", user=5, message_id="q2"))
        await house.take(said("/stop all", user=6, role="admin", message_id="s"))
        assert house.transport.texts == []
        assert [message.message_id for message in house.history.take_overheard(GROUP)] == ["q2"]


async def test_others_go_on_when_somebody_stops_what_he_asked() -> None:
    async with hanging(words("for B")) as house:
        await house.dispatcher.handle(said("B asks", user=5, message_id="q2"))
        await house.take(said("停", message_id="s"))
        assert house.transport.texts == ["for B"]


async def test_a_question_that_waits_behind_the_run_that_is_stopped_is_answered() -> None:
    async with hanging(words("the next"), steers=False) as house:
        await house.dispatcher.handle(said("and this?", message_id="q2"))
        await house.take(said("停", message_id="s"))
        assert house.transport.texts == ["the next"]


async def test_a_question_that_waits_is_not_asked_where_it_is_all_there_is_of_ones_own() -> None:
    async with hanging() as house:
        await house.dispatcher.handle(said("B asks", user=5, message_id="q2"))
        await house.dispatcher.handle(said("停", user=5, message_id="s"))
        await house.take(said("停", message_id="t"))
        assert house.transport.texts == []


async def test_words_of_a_turn_that_is_over_do_not_leave_any_more() -> None:
    async with hall(rules=RULES) as house:
        with house.live.going_on(said("go", message_id="q1")) as live:
            live.begin(await house.context_builder.begin(live.message, None))
        turn_id = house.live.ended(GROUP)[0].turn_id
        house.transport.failures.append(NotConnected("gone"))
        house.outbox.post(SendMessage(GROUP, (Text("so"),)), turn_id=turn_id)
        house.outbox.post(SendMessage(GROUP, (Text("much"),)), turn_id=turn_id)
        await until(lambda: house.outbox.unsent(GROUP) == {turn_id})
        await house.take(said("停", message_id="s"))
        states = [entry.state for entry in house.store.of("send_changed") if isinstance(entry, SendChanged)]
        assert states.count(SendState.WITHDRAWN) == 2
        house.outbox.connected()
        await house.outbox.wait_idle()
        assert house.transport.texts == []


async def test_a_tool_that_does_not_let_go_holds_up_neither_the_stop_nor_the_next_question() -> None:
    begun, never = asyncio.Event(), asyncio.Event()

    @tool(side_effects="external")
    async def cling() -> str:
        """Begins again whatever happens."""
        for _ in range(20):  # not for ever: a test that fails is to end
            begun.set()
            try:
                await never.wait()
            except BROKEN:  # as people write it: `except:`
                continue
        return "never"

    async with hall(calls(("cling", "")), words("next"), rules=RULES) as house:
        house.toolset.register(cling)
        await house.dispatcher.handle(said("go", message_id="q1"))
        await begun.wait()
        await house.take(said("停", message_id="s"), said("and now?", message_id="q2"))
        assert house.transport.texts == ["next"]
