from __future__ import annotations

import pytest
from msgspec.structs import replace

from bot.core.events import MessageReceived
from bot.core.ports import Member
from bot.core.server_clock import HEARD, ServerClock
from tests.bot.hall import hall, muted
from tests.cases import each_case
from tests.fakes import BOT, GROUP, ManualClock, said


class SinceBoot(ManualClock):
    def monotonic(self) -> float:
        return self.time - 900.0


def at(time: float) -> MessageReceived:
    return replace(said("hi"), time=time)


def ages(*heard: float, now: float = 1000.0) -> ServerClock:
    """Of messages of these times, which all came now."""
    made = ServerClock(ManualClock(now))
    for time in heard:
        made.record_arrival(at(time))
    return made


def test_a_time_of_the_server_is_told_by_ours_once_a_message_of_the_account_has_come() -> None:
    told = ServerClock(clock := SinceBoot(1000.0))
    for time in (1600, 1590):
        told.record_arrival(at(time))
    clock.time += 50
    assert told.by_ours(2000, BOT) == pytest.approx(1400)
    assert told.by_ours(2000, 20002) == 2000


@each_case(("asked", "time", "older"), [(1000.0, 999, True), (1000.9, 1000, False), (1001.0, 1000, True)])
def test_what_was_said_in_an_earlier_second_is_older(asked: float, time: int, older: bool) -> None:
    assert ages(1000).is_older(at(time), asked) is older
    assert ages().is_older(at(time), asked) is older


@each_case("ahead", [30, 7200])
def test_a_clock_of_ours_that_is_ahead_makes_nothing_older(ahead: int) -> None:
    told = ages(1000 - ahead, 990 - ahead)
    assert not told.is_older(at(1000 - ahead), 1000.5)
    assert told.is_older(at(999 - ahead), 1000.5)


@each_case("behind", [30, 7200, 1e9])
def test_neither_does_one_that_is_behind_nor_a_message_from_the_future(behind: float) -> None:
    assert not ages(1000 + behind).is_older(at(1000), 1000.5)
    assert ages(1000 + behind).is_older(at(999), 1000.5)


def test_a_message_that_took_long_to_come_does_not_count() -> None:
    assert ages(1000, 400).is_older(at(999), 1000.0)


def test_only_the_latest_messages_tell_the_time() -> None:
    told = ages(1000, *[940] * HEARD)
    assert not told.is_older(at(940), 1000.0)
    assert ages(1000, *[940] * (HEARD - 1)).is_older(at(940), 1000.0)


def test_how_old_something_is_tells_what_was_heard_new_and_else_our_clock() -> None:
    told, missed = ages(600), at(600)
    assert told.age(at(990)) == 10
    told.add_missed(missed)
    told.record_new(missed)
    assert told.age(at(990)) == 10
    for time, age in ((690, -300), (700, -290), (1300, 310)):
        told.record_new(at(time))
        assert told.age(at(990)) == age


def test_what_was_missed_is_older_than_everything_and_tells_no_time() -> None:
    told, missed = ages(1000), at(0)
    assert not told.is_missed(missed)
    told.add_missed(missed)
    told.record_arrival(missed)
    assert told.is_missed(missed)
    assert told.is_older(missed, -1e9)
    alone = ages()
    alone.add_missed(missed)
    alone.record_arrival(missed)
    assert alone.is_older(at(999), 1000.0)


@each_case("ahead", [-3600, 0, 3600])
async def test_the_end_of_a_mute_is_read_by_the_clock_of_the_server_that_tells_it(ahead: int) -> None:
    async with hall() as house:
        house.late.preload((), ())
        mutes, now = house.mutes, house.clock.now() + ahead
        await house.take(replace(said("hello", at=False), time=now), muted(30))
        for muted_until, left in ((None, 30), (0.0, 0), (now + 60, 60), (now + 90, 90)):
            house.mute_handler.learn(GROUP, Member("member", muted_until))
            assert mutes.until(GROUP) == (house.clock.monotonic() + left if left else 0)
        house.mute_handler.learn(GROUP, Member("member", now - 1))
        assert not mutes.may_hold_in(GROUP)
