from __future__ import annotations

from bot.memory.own_limits import OwnLimits
from bot.policy.limits import LIFTED, OwnCap
from tests.fakes import GROUP, ManualClock, RecordingStore


async def test_what_was_set_outlives_a_restart_and_nothing_is_set_that_would_not() -> None:
    store, clock = RecordingStore(), ManualClock()
    limits = OwnLimits(store=store, choices=store, clock=clock)
    assert not await limits.keep(777, LIFTED)  # nobody knows yet what else there is
    assert await limits.start()
    assert await limits.keep(777, OwnCap(cost=5.0))
    assert await limits.keep(777, LIFTED, until=clock.time + 60)
    assert await limits.keep(GROUP, OwnCap(tokens=9), until=clock.time + 60)
    again = OwnLimits(store=store, choices=store, clock=clock)
    assert await again.start()
    assert again.all() == limits.all() == {777: LIFTED, GROUP: OwnCap(tokens=9)}
    clock.time += 60
    assert again.all() == {777: OwnCap(cost=5.0)}
    assert await again.keep(777, None)
    assert not again.are_some  # what is over is let go of
    store.trouble = True
    assert not await again.keep(777, LIFTED)
    assert again.of(777) is None
    assert not await OwnLimits(store=store, choices=store, clock=clock).start()
