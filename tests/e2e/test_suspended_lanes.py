"""Suspended turns among the others of a lane: denied once when they expire, stopped by a recall when they go on."""

from __future__ import annotations

import asyncio

from bot.domain.chat import Completion, ModelRequest
from bot.domain.journal import TurnClosed
from bot.domain.run import Stop
from bot.domain.suspension import Allow
from tests.bot.conversation.test_dispatcher import hall, recalled
from tests.e2e.test_suspended_turns import ask_first
from tests.fakes import GROUP, calls, said, until, words


async def test_a_turn_that_expired_takes_one_place_in_a_busy_lane() -> None:
    gate = asyncio.Event()

    async def think(request: ModelRequest) -> Completion:
        await gate.wait()
        return words("slow")

    async with hall(calls(("ask_first", "")), think, words("not allowed")) as house, asyncio.TaskGroup() as group:
        house.toolset.register(ask_first)
        await house.take(said("please"))
        await house.dispatcher.handle(said("something else"))
        denying = group.create_task(house.dispatcher.deny_expired())
        await until(lambda: len(house.clock.slept) > 40)
        assert house.clock.time > 1_700_000_000 + 60
        assert house.dispatcher.lanes.waiting == 2
        denying.cancel()
        gate.set()
        await house.dispatcher.lanes.wait_idle()
        assert house.transport.texts == ["slow", "not allowed"]


async def test_a_turn_that_waits_again_is_denied_again() -> None:
    async with (
        hall(calls(("ask_first", "")), calls(("ask_first", "")), words("well then")) as house,
        asyncio.TaskGroup() as group,
    ):
        house.toolset.register(ask_first)
        await house.take(said("please"))
        denying = group.create_task(house.dispatcher.deny_expired())
        await until(lambda: house.transport.sent)
        denying.cancel()
        assert len(house.store.of("run_suspended")) == 2


async def test_a_recall_stops_a_turn_that_goes_on() -> None:
    asked = asyncio.Event()

    async def think(request: ModelRequest) -> Completion:
        asked.set()
        await asyncio.Event().wait()
        return words("never")

    async with hall(calls(("ask_first", "")), think) as house:
        house.toolset.register(ask_first)
        await house.take(said("please", message_id="61"))
        ((turn_id, run),) = house.turns.waiting().items()
        assert house.dispatcher.resume(GROUP, turn_id, {run.pending[0].call.id: Allow()})
        await asked.wait()
        await house.take(recalled("61"))
        assert house.transport.sent == []
        (closed,) = house.store.of("turn_closed")
        assert isinstance(closed, TurnClosed)
        assert (closed.stop, closed.round) == (Stop.STOPPED, ())
