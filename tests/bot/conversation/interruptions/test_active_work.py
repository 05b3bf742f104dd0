"""Whose questions something goes on about; how that ends: test_stopping.py."""

from __future__ import annotations

from bot.domain.events import Conversation
from tests.bot.hall import hall
from tests.fakes import BOT, GROUP, said

ELSEWHERE = Conversation(BOT, "group", 5)


async def test_a_lane_that_is_held_knows_who_asked_there_and_nobody_elsewhere() -> None:
    async with hall() as house:
        house.lanes.hold(GROUP)
        await house.dispatcher.handle(said("one", user=5))
        await house.dispatcher.handle(said("two", user=6))
        goings_on = house.goings_on
        assert goings_on.askers(GROUP) == {5, 6}
        assert goings_on.askers(ELSEWHERE) == set()
        assert goings_on.end(GROUP, {5}, waiting=True) == 1
        assert goings_on.askers(GROUP) == {6}
        assert goings_on.end(GROUP, {6}, waiting=True) == 1
        house.lanes.release(GROUP)
        await house.lanes.wait_idle()
        assert len(house.history.take_overheard(GROUP)) == 2
