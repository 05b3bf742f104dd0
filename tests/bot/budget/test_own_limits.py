from __future__ import annotations

from msgspec.structs import replace

from bot.budget.limits import LIFTED, Cap, DayLimits, LimitLevel, LimitOverride, OwnLimits
from tests.bot.budget.till import Till, till_of
from tests.fakes import GROUP, PRIVATE, ManualClock, RecordingStore
from tests.settings import kept_settings


async def test_what_was_set_outlives_a_restart_and_nothing_is_set_that_would_not() -> None:
    store, clock = RecordingStore(), ManualClock()
    limits = OwnLimits(settings=kept_settings(store, clock=clock), clock=clock)
    assert not await limits.keep(777, LIFTED)  # nobody knows yet what else there is
    assert await limits.load()
    assert await limits.keep(777, LimitOverride(cost=5.0))
    assert await limits.keep(777, LIFTED, until=clock.time + 60)
    assert await limits.keep(GROUP, LimitOverride(tokens=9), until=clock.time + 60)
    again = OwnLimits(settings=kept_settings(store, clock=clock), clock=clock)
    assert await again.load()
    assert again.all() == limits.all() == {777: LIFTED, GROUP: LimitOverride(tokens=9)}
    clock.time += 60
    assert again.all() == {777: LimitOverride(cost=5.0)}
    assert await again.keep(777, None)
    assert not again.are_some  # what is over is let go of
    store.trouble = True
    assert not await again.keep(777, LIFTED)
    assert again.of(777) is None
    assert not await OwnLimits(settings=kept_settings(store, clock=clock), clock=clock).load()


async def test_a_group_has_the_limits_of_the_operators_file_where_no_owner_has_set_one() -> None:
    store, clock = RecordingStore(), ManualClock()
    limits = OwnLimits(settings=kept_settings(store, clock=clock), clock=clock)
    assert await limits.load()
    usual = DayLimits(user=Cap(1.0), group=Cap(2.0, 9000))
    filed = {GROUP.session_id: LimitOverride(cost=0.5)}
    assert not limits.are_some
    limits.set_filed(filed)
    assert limits.are_some
    assert limits.cap(GROUP, usual) == Cap(0.5, 9000)
    assert limits.cap(replace(GROUP, session_id=9), usual) == Cap(2.0, 9000)
    assert limits.cap(GROUP.session_id, usual) == Cap(1.0)  # a person of that number
    assert await limits.keep(GROUP, LimitOverride(tokens=7))
    assert limits.cap(GROUP, usual) == Cap(0.5, 7)
    limits.set_filed({})
    assert limits.cap(GROUP, usual) == Cap(2.0, 7)


async def test_a_limit_of_somebodys_own_holds_at_once_and_so_does_its_end() -> None:
    """Though nothing is taken in between."""
    till = await till_of(DayLimits(user=Cap(tokens=100)))
    till.takes(60)
    assert till.rung() is LimitLevel.ALL
    own = till.spending.own
    for cap, rung in (
        (LimitOverride(tokens=50), LimitLevel.SPENT),
        (LIFTED, LimitLevel.ALL),
        (LimitOverride(tokens=80), LimitLevel.CHEAP),
    ):
        assert await own.keep(777, cap)
        assert till.rung() is till.rung(PRIVATE) is rung
        assert till.rung(who=5) is LimitLevel.ALL
    assert await own.keep(777, LimitOverride(tokens=60), until=till.clock.now() + 60)
    assert till.rung() is LimitLevel.SPENT
    till.clock.time += 60
    assert till.rung() is LimitLevel.CHEAP
    assert await own.keep(777, None)
    assert till.rung() is LimitLevel.ALL


async def test_whether_anybody_has_a_limit_is_known_at_once_whoever_sets_or_lifts_it() -> None:
    till = await till_of(DayLimits())
    spending, settings = till.spending, kept_settings(till.store, clock=till.clock)
    assert not spending.has_limits
    spending.own.set_filed({GROUP.session_id: LimitOverride(tokens=9)})
    assert spending.has_limits
    spending.own.set_filed({})
    assert not spending.has_limits
    elsewhere = OwnLimits(settings=settings, clock=till.clock)
    assert await elsewhere.load()
    assert await elsewhere.keep(777, LimitOverride(tokens=9))
    assert not spending.has_limits  # nobody told this bot
    again = Till(DayLimits(), store=till.store).spending
    assert not again.has_limits
    assert await again.load()
    assert again.has_limits  # as an earlier process has it
