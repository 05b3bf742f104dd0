from __future__ import annotations

from adapters.metrics.metrics import Count, Family, Times


def test_times_count_up_to_their_bounds_and_those_with_them() -> None:
    times = Times((0.5, 1))
    for seconds in (0.5, 0.75, 1.0, 7.0):
        times.observe(seconds)
    assert times.buckets() == [(0.5, 1), (1, 3), (float("inf"), 4)]
    assert times.sum == 9.25


def test_an_instrument_is_there_from_the_first_time_it_is_asked_for() -> None:
    family = Family("calls", "Calls.", ("tool",), Count)
    assert family.members == {}
    family.labels("a").inc()
    family.labels("a").inc(2)
    assert {values: count.value for values, count in family.members.items()} == {("a",): 3}
