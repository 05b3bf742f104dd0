"""Whose questions something goes on about; how that ends: test_stop_handler.py."""

from __future__ import annotations

from frostagent.types.conversation import Conversation
from tests.bot.hall import hall
from tests.fakes import BOT, GROUP, said

ELSEWHERE = Conversation(BOT, "group", 5)


async def test_a_lane_that_is_held_knows_who_asked_there_and_nobody_elsewhere() -> None:
    async with hall() as house:
        house.lanes.hold(GROUP)
        await house.dispatcher.handle(said("one", user=5))
        await house.dispatcher.handle(said("two", user=6))
        active_work = house.active_work
        assert active_work.askers(GROUP) == {5, 6}
        assert active_work.askers(ELSEWHERE) == set()
        assert active_work.end(GROUP, {5}, waiting=True) == 1
        assert active_work.askers(GROUP) == {6}
        assert active_work.end(GROUP, {6}, waiting=True) == 1
        house.lanes.release(GROUP)
        await house.lanes.wait_idle()
        assert len(house.history.take_overheard(GROUP)) == 2
