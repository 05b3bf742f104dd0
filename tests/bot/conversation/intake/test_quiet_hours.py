"""Quiet hours and wishes; the scenarios play them."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from bot.conversation.intake.quiet_hours import QuietHours
from bot.memory.modes import Mode, Modes
from bot.memory.quiet_overrides import QuietOverride, QuietOverrides
from bot.policy.quiet import Hours, Quiet
from bot.policy.wake import Rules, Silence, Wake
from frostagent.types.traits import Audience
from tests.fakes import GROUP, PRIVATE, ManualClock, RecordingStore, said, same_rules

STRONG, WEAK, CHANCE = Wake("mention"), Wake("name", weak=True), Wake("chance", weak=True)
NIGHT = (Hours(1410, 450),)


def at(hour: int, minute: int, *, day: int = 14, month: int = 3) -> ManualClock:
    return ManualClock(time.mktime((2026, month, day, hour, minute, 0, 0, 0, -1)))


def hush(clock: ManualClock, rules: Rules) -> tuple[QuietHours, QuietOverrides]:
    store = RecordingStore()
    quiet_overrides = QuietOverrides(store=store, choices=store, clock=clock)
    modes = Modes(store=store, choices=store, clock=clock)
    return QuietHours(
        rules=rules, local=same_rules, quiet_overrides=quiet_overrides, modes=modes, clock=clock
    ), quiet_overrides


def test_in_quiet_hours_only_who_certainly_means_the_bot_is_answered() -> None:
    clock = at(23, 29)
    kept, _ = hush(clock, Rules(quiet=NIGHT, owners=frozenset({5})))
    assert kept.against(said("hi"), WEAK) == ""
    clock.time += 60
    assert kept.commanders(GROUP) is Audience.EVERYONE
    assert [kept.against(said("hi"), wake) for wake in (STRONG, WEAK, CHANCE)] == ["", Silence.QUIET, Silence.QUIET]
    assert [kept.against(said("hi", user=5), wake) for wake in (STRONG, WEAK, CHANCE)] == ["", "", Silence.QUIET]
    clock.time += 8 * 3600
    assert kept.against(said("hi"), WEAK) == ""


def test_where_the_operator_wants_it_nobody_but_owners_is_answered_then() -> None:
    kept, _ = hush(at(0, 0), Rules(quiet=NIGHT, quiet_mode=Quiet.ALL, owners=frozenset({5})))
    assert [kept.against(said("hi", where=where), STRONG) for where in (GROUP, PRIVATE)] == [
        Silence.QUIET,
        Silence.QUIET,
    ]
    assert kept.against(said("hi", user=5), STRONG) == ""
    assert (kept.commanders(GROUP), kept.commanders(PRIVATE)) == (Audience.GROUP_ADMIN, Audience.EVERYONE)


@pytest.mark.parametrize(("month", "day", "hours"), [(3, 29, 7), (10, 25, 9), (6, 1, 8)])
def test_a_night_ends_by_the_clock_on_the_wall_when_summer_time_begins_or_ends(
    month: int, day: int, hours: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setenv("TZ", "Europe/Berlin")
        time.tzset()
        clock = at(23, 30, month=month, day=day - 1) if day > 1 else at(23, 30, month=month - 1, day=31)
        kept, _ = hush(clock, Rules(quiet=NIGHT))
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
    kept, _ = hush(clock, Rules(quiet=hours))
    assert kept.end(GROUP) == clock.time + lasting * 3600


@pytest.mark.usefixtures("berlin")
@pytest.mark.parametrize(("month", "day"), [(3, 28), (10, 24)])
@pytest.mark.parametrize("hours", [(LATE,), (EARLY, DAWN), (Hours(1320, 125), Hours(170, 175)), (Hours(151, 150),)])
def test_the_end_of_quiet_is_the_first_moment_that_the_settings_do_not_have_it(
    month: int, day: int, hours: tuple[Hours, ...]
) -> None:
    clock = at(21, 30, month=month, day=day)
    kept, _ = hush(clock, Rules(quiet=hours))
    for _ in range(13):
        minutes = (clock.time + 60 * minute for minute in range(50 * 60))
        assert kept.end(GROUP) == next(one for one in minutes if not kept.is_hour(GROUP, one)), clock.time
        clock.time += 47 * 60


async def test_a_wish_for_quiet_is_like_the_hours_and_one_for_silence_holds_for_all() -> None:
    clock = at(12, 0)
    kept, wishes = hush(clock, Rules(owners=frozenset({5})))
    assert not kept.holds_in(GROUP)
    await wishes.keep(GROUP, QuietOverride(is_mute=False, until=clock.time + 60))
    assert [kept.against(said("hi"), wake) for wake in (STRONG, WEAK)] == ["", Silence.QUIET]
    assert kept.against(said("hi", where=PRIVATE), WEAK) == ""
    clock.time += 60
    assert kept.against(said("hi"), WEAK) == ""
    await wishes.keep(GROUP, QuietOverride(is_mute=True))
    assert [kept.against(said("hi", user=user), STRONG) for user in (777, 5)] == [Silence.SILENCED, Silence.SILENCED]
    assert (kept.silence(GROUP), kept.silence(PRIVATE)) == (Silence.SILENCED, "")
    assert (kept.commanders(GROUP), kept.commanders(PRIVATE)) == (Audience.GROUP_ADMIN, Audience.EVERYONE)


async def test_the_end_of_quiet_is_that_of_a_wish_and_of_the_hours_it_ends_in() -> None:
    clock = at(12, 0)
    kept, wishes = hush(clock, Rules(quiet=NIGHT))
    noon = clock.time
    await wishes.keep(GROUP, QuietOverride(is_mute=False, until=noon + 90))
    assert kept.end(GROUP) == noon + 90
    await wishes.keep(GROUP, QuietOverride(is_mute=False, until=noon + 12 * 3600))  # midnight, and the night goes on
    assert kept.end(GROUP) == noon + 19.5 * 3600
    await wishes.keep(GROUP, QuietOverride(is_mute=True))
    assert kept.end(GROUP) == 0
    for hour in (0, 12):
        always, _ = hush(at(hour, 0), Rules(quiet=(Hours(0, 1440),)))
        assert always.end(GROUP) == 0


def test_in_a_group_that_is_not_live_only_owners_commands_are_answered() -> None:
    clock, store = at(12, 0), RecordingStore()
    modes = Modes(store=store, choices=store, clock=clock)
    quiet_overrides = QuietOverrides(store=store, choices=store, clock=clock)
    kept = QuietHours(rules=Rules(), local=same_rules, quiet_overrides=quiet_overrides, modes=modes, clock=clock)
    for mode in Mode:
        modes.put(GROUP, mode)
        live = Audience.EVERYONE if mode is Mode.LIVE else Audience.OWNER
        assert (kept.commanders(GROUP), kept.is_held(GROUP)) == (live, mode not in {Mode.LIVE, Mode.SHADOW})
