"""Quiet hours and wishes; the scenarios play them."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from bot.core.conversation import Conversation
from bot.policy.wake import Wake
from bot.quiet.quiet_hours import QuietHours, QuietOverride
from bot.quiet.rule import Hours, Quiet, QuietRule
from tests.fakes import GROUP, PRIVATE, ManualClock, RecordingStore
from tests.settings import kept_settings

STRONG, WEAK, CHANCE = Wake("mention"), Wake("name", weak=True), Wake("chance", weak=True)
NIGHT = (Hours(1410, 450),)


def at(hour: int, minute: int, *, day: int = 14, month: int = 3) -> ManualClock:
    return ManualClock(time.mktime((2026, month, day, hour, minute, 0, 0, 0, -1)))


def hush(
    clock: ManualClock, *hours: Hours, mode: Quiet = Quiet.WEAK, store: RecordingStore | None = None
) -> QuietHours:
    settings = kept_settings(store or RecordingStore(), clock=clock)
    return QuietHours(rule_of=lambda _: QuietRule(hours, mode), settings=settings, clock=clock)


def held(kept: QuietHours, wake: Wake, *, is_owner: bool = False, where: Conversation = GROUP) -> bool:
    """Whether what wakes the bot so is not answered."""
    return kept.keeps_from(where, is_owner=is_owner, is_weak=wake.weak, is_uncalled=wake.is_uncalled)


def test_in_quiet_hours_only_who_certainly_means_the_bot_is_answered() -> None:
    clock = at(23, 29)
    kept = hush(clock, *NIGHT)
    assert not held(kept, WEAK)
    clock.time += 60
    assert not kept.leaves_to_admins(GROUP)
    assert [held(kept, wake) for wake in (STRONG, WEAK, CHANCE)] == [False, True, True]
    assert [held(kept, wake, is_owner=True) for wake in (STRONG, WEAK, CHANCE)] == [False, False, True]
    clock.time += 8 * 3600
    assert not held(kept, WEAK)


def test_where_the_operator_wants_it_nobody_but_owners_is_answered_then() -> None:
    kept = hush(at(0, 0), *NIGHT, mode=Quiet.ALL)
    assert [held(kept, STRONG, where=where) for where in (GROUP, PRIVATE)] == [True, True]
    assert not held(kept, STRONG, is_owner=True)
    assert (kept.leaves_to_admins(GROUP), kept.leaves_to_admins(PRIVATE)) == (True, False)


@pytest.mark.parametrize(("month", "day", "hours"), [(3, 29, 7), (10, 25, 9), (6, 1, 8)])
def test_a_night_ends_by_the_clock_on_the_wall_when_summer_time_begins_or_ends(
    month: int, day: int, hours: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setenv("TZ", "Europe/Berlin")
        time.tzset()
        clock = at(23, 30, month=month, day=day - 1) if day > 1 else at(23, 30, month=month - 1, day=31)
        kept = hush(clock, *NIGHT)
        assert kept.holds_in(GROUP)
        clock.time += 7
        assert kept.end(GROUP) == clock.time - 7 + hours * 3600
        clock.time += hours * 3600 - 67
        assert kept.holds_in(GROUP)
        clock.time += 60
        assert not kept.holds_in(GROUP)
    time.tzset()


@pytest.fixture
def berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patched:
        patched.setenv("TZ", "Europe/Berlin")
        time.tzset()
        yield
    time.tzset()


LATE, EARLY, DAWN = Hours(1380, 150), Hours(1380, 120), Hours(180, 330)


@pytest.mark.usefixtures("berlin")
@pytest.mark.parametrize(
    ("month", "day", "hours", "lasting"),
    [
        (3, 28, (LATE,), 3),  # to 02:30, which there is not: the clock is at 03:00
        (3, 28, (EARLY,), 3),
        (3, 28, (LATE, DAWN), 5.5),
        (10, 24, (LATE,), 3.5),  # to the first 02:30 of two
        (10, 24, (LATE, Hours(150, 300)), 7),
        (10, 24, (Hours(1380, 180),), 5),
        (6, 1, (LATE,), 3.5),
    ],
)
def test_a_night_that_ends_while_the_clock_is_moved_ends_at_the_first_moment_that_is_not_of_it(
    month: int, day: int, hours: tuple[Hours, ...], lasting: float
) -> None:
    clock = at(23, 0, month=month, day=day)
    kept = hush(clock, *hours)
    assert kept.end(GROUP) == clock.time + lasting * 3600


@pytest.mark.usefixtures("berlin")
@pytest.mark.parametrize(("month", "day"), [(3, 28), (10, 24)])
@pytest.mark.parametrize("hours", [(LATE,), (EARLY, DAWN), (Hours(1320, 125), Hours(170, 175)), (Hours(151, 150),)])
def test_the_end_of_quiet_is_the_first_moment_that_the_settings_do_not_have_it(
    month: int, day: int, hours: tuple[Hours, ...]
) -> None:
    clock = at(21, 30, month=month, day=day)
    kept = hush(clock, *hours)
    for _ in range(13):
        minutes = (clock.time + 60 * minute for minute in range(50 * 60))
        assert kept.end(GROUP) == next(one for one in minutes if not kept.is_hour(GROUP, one)), clock.time
        clock.time += 47 * 60


async def test_a_wish_for_quiet_is_like_the_hours_and_one_for_silence_holds_for_all() -> None:
    clock = at(12, 0)
    kept = hush(clock)
    assert not kept.holds_in(GROUP)
    await kept.keep_quiet(GROUP, clock.time + 60)
    assert [held(kept, wake) for wake in (STRONG, WEAK)] == [False, True]
    assert not held(kept, WEAK, where=PRIVATE)
    clock.time += 60
    assert not held(kept, WEAK)
    await kept.mute(GROUP)
    assert (kept.is_muted(GROUP), kept.is_muted(PRIVATE), kept.muted) == (True, False, (GROUP,))
    assert (kept.leaves_to_admins(GROUP), kept.leaves_to_admins(PRIVATE)) == (True, False)


async def test_the_end_of_quiet_is_that_of_a_wish_and_of_the_hours_it_ends_in() -> None:
    clock = at(12, 0)
    kept = hush(clock, *NIGHT)
    noon = clock.time
    await kept.keep_quiet(GROUP, noon + 90)
    assert kept.end(GROUP) == noon + 90
    await kept.keep_quiet(GROUP, noon + 12 * 3600)  # midnight, and the night goes on
    assert kept.end(GROUP) == noon + 19.5 * 3600
    await kept.mute(GROUP)
    assert kept.end(GROUP) == 0
    for hour in (0, 12):
        assert hush(at(hour, 0), Hours(0, 1440)).end(GROUP) == 0


async def test_what_somebody_wished_outlives_the_process_until_its_time_or_its_end() -> None:
    store, clock = RecordingStore(), ManualClock(1000.0)

    async def restarted() -> QuietHours:
        settings = kept_settings(store)
        assert await settings.load()
        return QuietHours(rule_of=lambda _: QuietRule(), settings=settings, clock=clock)

    first = hush(clock, store=store)
    assert await first.keep_quiet(GROUP, 1600.4)
    assert await first.mute(PRIVATE)
    kept = await restarted()
    assert (kept.override(GROUP), kept.muted) == (QuietOverride(is_mute=False, until=1600.0), (PRIVATE,))
    assert await kept.end_override(PRIVATE)
    clock.time = 1600.0
    kept = await restarted()
    assert (kept.override(GROUP), kept.override(PRIVATE)) == (None, None)
