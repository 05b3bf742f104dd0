from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bot.chat.rate_limiter import Courtesy, Notice, RecentWakes
from frostagent.types.traits import Rate


@given(st.lists(st.floats(0, 20), max_size=40), st.integers(1, 4), st.integers(1, 10))
def test_no_window_ever_has_more_wakes_than_the_rate(waits: list[float], calls: int, seconds: int) -> None:
    recent, rate, now = RecentWakes(), Rate(calls, seconds), 0.0
    taken: list[float] = []
    for wait in waits:
        now += wait
        has_room = recent.has_room(rate, now)
        assert has_room == (len([at for at in taken if at > now - seconds]) < calls)
        if has_room:
            recent.add(now)
            taken.append(now)


def test_a_limit_is_told_by_a_line_then_by_a_sign_then_not_at_all_and_anew_once_that_is_long_ago() -> None:
    courtesy = Courtesy(signs=1)
    told = [courtesy.next_notice(now, until=now + 10) for now in (0, 1, 2, 9.9, 10, 11)]
    assert told == [Notice.LINE, Notice.SIGN, Notice.NOTHING, Notice.NOTHING, Notice.LINE, Notice.SIGN]


def test_a_wake_that_is_as_old_as_the_window_is_long_counts_no_more() -> None:
    recent, rate = RecentWakes(), Rate(1, 10)
    recent.add(5.0)
    assert [recent.has_room(rate, now) for now in (14.9, 15.0)] == [False, True]
