from __future__ import annotations

import pytest

from bot.core.server_clock import LASTING, LATE, Lateness
from tests.cases import each_case


def heard(*times_and_moments: tuple[float, float]) -> Lateness:
    made = Lateness()
    for time, now in times_and_moments:
        made.record(time, now)
    return made


def test_nothing_is_known_of_the_first_message() -> None:
    assert Lateness().least(0, 1e6) < 0
    assert heard((0, 1e6)).least(0, 1e6) == -1


@each_case("ahead", [-1e9, -7200, 0, 7200])
def test_a_message_is_as_late_as_it_is_behind_the_quickest_whatever_the_clocks_say(ahead: float) -> None:
    told = heard((100 - ahead, 100), (105 - ahead, 120), (50 - ahead, 130))
    assert told.least(50 - ahead, 130) == pytest.approx(79, abs=0.01)
    assert told.least(50 - ahead, 140) == pytest.approx(89, abs=0.01)
    assert told.least(130 - ahead, 130) == pytest.approx(-1, abs=0.01)


def test_however_many_are_told_late_at_once_each_is_late() -> None:
    told = heard((1000, 1000), *((1000 + number, 9000) for number in range(500)))
    assert told.least(1499, 9000) == pytest.approx(7500, abs=1)


def test_where_all_have_been_as_late_for_long_a_clock_was_set_back() -> None:
    told = heard((1000, 1000), (0, 1010), (LASTING, 1010 + LASTING))
    assert told.least(LASTING, 1010 + LASTING) > 900
    told.record(LASTING + 1, 1011 + LASTING)
    assert told.least(LASTING + 1, 1011 + LASTING) == -1


def test_one_that_came_at_once_meanwhile_shows_that_none_was() -> None:
    told = heard((1000, 1000), (0, 1010), (1300, 1300), (300, 1400), (1400 + LATE, 1400 + 2 * LATE - 1))
    told.record(300, 1405 + LASTING)
    assert told.least(300, 1405 + LASTING) > 1000


def test_one_message_from_the_future_makes_no_other_late() -> None:
    told = heard((1000, 1000), (1310, 1010), (1020, 1020))
    assert told.least(1030, 1030) < LATE


def test_a_clock_that_was_set_forward_is_known_after_some_messages() -> None:
    told = heard((1000, 1000), *((4600.0 + number, 1000.0 + number) for number in range(1, 61)))
    assert told.least(4661, 1061) == pytest.approx(-1, abs=0.1)


def test_clocks_that_go_apart_make_nothing_late() -> None:
    """Ours is quicker by 50 millionths, which is 130 s in a month."""
    told = Lateness()
    for hour in range(24 * 60):
        told.record(3600.0 * hour, 3600.18 * hour)
        assert told.least(3600.0 * hour, 3600.18 * hour) < 1
