"""Whose questions something goes on about; how that ends: test_stop_handler.py."""

from __future__ import annotations

import asyncio
from unittest.mock import AsyncMock

import pytest
from msgspec.structs import replace

from bot.chat.cancellation import CONSEQUENCES, Reason, Selector
from bot.chat.tasks import Task
from bot.core.actions import SendMessage
from bot.core.conversation import Conversation
from bot.core.errors import NotConnected
from bot.core.journal import TurnClosed
from bot.policy.wake import Wake
from frostagent.types.messages import Completion, ModelRequest
from frostagent.types.runs import Stop
from frostagent.types.speech import Text
from tests.bot.hall import hall, recalled
from tests.cases import each_case
from tests.fakes import BOT, GROUP, said, until, words

ELSEWHERE = Conversation(BOT, "group", 5)


def asked_by(user: int) -> Selector:
    return Selector(where=GROUP, askers=frozenset({user}))


async def test_a_lane_that_is_held_knows_who_asked_there_and_nobody_elsewhere() -> None:
    async with hall() as house:
        house.lanes.hold(GROUP)
        await house.dispatcher.handle(said("one", user=5))
        await house.dispatcher.handle(said("two", user=6))
        active_work = house.active_work
        assert active_work.askers(GROUP) == {5, 6}
        assert active_work.askers(ELSEWHERE) == set()
        assert active_work.cancel(asked_by(5), Reason.STOPPED) == 1
        assert active_work.askers(GROUP) == {6}
        assert active_work.cancel(asked_by(6), Reason.STOPPED) == 1
        house.lanes.release(GROUP)
        await house.lanes.wait_idle()
        assert len(house.history.take_overheard(GROUP)) == 2


async def test_a_selector_that_says_nothing_selects_everything() -> None:
    async with hall() as house:
        for where in (GROUP, ELSEWHERE):
            house.lanes.hold(where)
            await house.dispatcher.handle(said("one", user=5, where=where, message_id=str(where.session_id)))
        assert house.active_work.cancel(Selector(), Reason.STOPPED) == 2
        assert [house.lanes.has(where) for where in (GROUP, ELSEWHERE)] == [False, False]
        for where in (GROUP, ELSEWHERE):
            house.lanes.release(where)


@each_case(
    ("selector", "is_meant"),
    [
        (Selector(), True),
        (Selector(where=GROUP), True),
        (Selector(where=ELSEWHERE), False),
        (Selector(group=GROUP.session_id), True),
        (Selector(group=5), False),
        (Selector(message_id="m"), True),
        (Selector(message_id=""), False),
        (Selector(askers=frozenset({5, 6})), True),
        (Selector(askers=frozenset()), False),
        (Selector(askers=frozenset({5}), message_id="another"), False),
        (Selector(said_until=99.0), False),
        (Selector(said_until=100.0), True),
    ],
)
def test_all_that_a_selector_says_must_hold(selector: Selector, is_meant: bool) -> None:
    question = replace(said("one", user=5, message_id="m"), time=100.0)
    assert selector.selects(question) is is_meant
    rest = selector.rest_of(Task(question, Wake("mention"), since=200.0))
    assert (rest is None) is is_meant


def test_a_turn_is_selected_by_its_id_and_a_task_by_when_it_came() -> None:
    question = replace(said("one", user=5, message_id="m"), time=100.0)
    assert Selector(turn_id="t1").selects_turn("t1", question)
    assert not Selector(turn_id="t2").selects_turn("t1", question)
    assert not Selector(taken_before=99.0).selects_turn("t1", question)
    task = Task(question, Wake("mention"), since=200.0)
    assert Selector(taken_before=200.0).rest_of(task) is task
    assert Selector(taken_before=201.0).rest_of(task) is None


def test_each_reason_says_what_becomes_of_work() -> None:
    assert set(CONSEQUENCES) == set(Reason)


@each_case(
    ("selector", "withdrawn"),
    [(Selector(), 1), (Selector(message_id="q1"), 1), (Selector(message_id="q2"), 0), (Selector(turn_id="t9"), 0)],
)
async def test_words_of_a_turn_that_is_over_are_selected_by_its_question(selector: Selector, withdrawn: int) -> None:
    async with hall() as house:
        with house.live.going_on(said("go", message_id="q1")) as live:
            live.begin(await house.context_builder.begin(live.message, None))
        turn_id = house.live.ended(GROUP)[0].turn_id
        house.transport.failures.append(NotConnected("gone"))
        house.outbox.post(SendMessage(GROUP, (Text("so"),)), turn_id=turn_id)
        await until(lambda: house.outbox.unsent(GROUP) == {turn_id})
        assert house.active_work.cancel(selector, Reason.STOPPED) == withdrawn


async def test_a_recall_ends_a_turn_whose_question_has_lost_its_last_line() -> None:
    """An owner's reply was the last line of what waited in the lane: the turn is about the line before it."""
    asked = asyncio.Event()

    async def think(request: ModelRequest) -> Completion:
        asked.set()
        await asyncio.Event().wait()
        return words("never")

    async with hall(think) as house:
        first, last = said("go", message_id="q1"), said("A1 yes", message_id="q2")
        await house.history.load(GROUP)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(house.decisions, "take_reply_later", AsyncMock(side_effect=last.__eq__))
            task = Task(last, Wake("mention"), house.clock.now(), lines=(first,), beside=(last,))
            assert house.lanes.put(GROUP, task)
            await asked.wait()
        await house.dispatcher.handle(recalled("q1"))
        await house.lanes.wait_idle()
        (closed,) = house.store.of("turn_closed")
        assert isinstance(closed, TurnClosed)
        assert (closed.stop, closed.round) == (Stop.STOPPED, ())
