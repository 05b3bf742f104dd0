from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from frostagent.engine.call_checks import Quotas
from frostagent.types.traits import Rate


def test_so_many_calls_may_be_made_and_the_next_when_the_first_is_old_enough() -> None:
    quotas, rate = Quotas(), Rate(2, 60)
    assert [quotas.take("a", rate, now=now) for now in (0, 10, 20, 59)] == [0, 0, 40, 1]
    assert quotas.take("a", rate, now=60) == 0
    assert quotas.take("a", rate, now=61) == 9


def test_each_tool_has_a_quota_of_its_own() -> None:
    quotas, rate = Quotas(), Rate(1, 60)
    assert [quotas.take(name, rate, now=0) for name in "abab"] == [0, 0, 60, 60]


@given(st.lists(st.floats(0, 20), max_size=40), st.integers(1, 4), st.integers(1, 10))
def test_no_window_ever_has_more_calls_than_the_rate(waits: list[float], calls: int, seconds: int) -> None:
    quotas, rate, now = Quotas(), Rate(calls, seconds), 0.0
    made: list[float] = []
    for wait in waits:
        now += wait
        left = quotas.take("a", rate, now=now)
        assert (left == 0) == (len([at for at in made if at > now - seconds]) < calls)
        made += [now] if left == 0 else []
