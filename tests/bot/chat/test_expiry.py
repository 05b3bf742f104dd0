"""Suspended turns among the others of a lane: denied once when they expire, stopped by a recall when they go on."""

from __future__ import annotations

import asyncio

from frostagent.types.messages import Completion, ModelRequest
from tests.bot.hall import hall
from tests.e2e.test_suspended_turns import ask_first
from tests.fakes import calls, said, until, words


async def test_a_turn_that_expired_takes_one_place_in_a_busy_lane() -> None:
    gate = asyncio.Event()

    async def think(request: ModelRequest) -> Completion:
        await gate.wait()
        return words("slow")

    async with hall(calls(("ask_first", "")), think, words("not allowed")) as house, asyncio.TaskGroup() as group:
        house.toolset.register(ask_first)
        await house.take(said("please"))
        await house.dispatcher.handle(said("something else"))
        denying = group.create_task(house.active_work.expire_approvals())
        await until(lambda: len(house.clock.slept) > 40)
        assert house.clock.time > 1_700_000_000 + 60
        assert house.lanes.waiting == 2
        denying.cancel()
        gate.set()
        await house.lanes.wait_idle()
        assert house.transport.texts == ["slow", "not allowed"]


async def test_a_turn_that_waits_again_is_denied_again() -> None:
    async with (
        hall(calls(("ask_first", "")), calls(("ask_first", "")), words("well then")) as house,
        asyncio.TaskGroup() as group,
    ):
        house.toolset.register(ask_first)
        await house.take(said("please"))
        denying = group.create_task(house.active_work.expire_approvals())
        await until(lambda: house.transport.sent)
        denying.cancel()
        assert len(house.store.of("run_suspended")) == 2
        assert sum("过期了" in line for line in house.asked) == 2
