from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from frostagent.models.upstreams import Breaker


def broken(breaker: Breaker, now: float) -> Breaker:
    """After its last failure before it opens."""
    for _ in range(breaker.threshold):
        with breaker.asking():
            breaker.fail(now)
    return breaker


def test_a_new_one_is_trusted_and_stays_so_below_its_threshold() -> None:
    breaker = Breaker(threshold=3)
    assert breaker.allows(0)
    breaker.fail(0)
    breaker.fail(0)
    assert breaker.allows(0)


def test_it_rests_after_so_many_failures_in_a_row() -> None:
    breaker = broken(Breaker(threshold=3, rest=30), now=100)
    assert not breaker.allows(100)
    assert not breaker.allows(129.9)
    assert breaker.allows(130)


def test_a_success_between_failures_begins_the_count_anew() -> None:
    breaker = Breaker(threshold=2)
    for _ in range(5):
        breaker.fail(0)
        breaker.succeed()
    assert breaker.allows(0)


def test_one_failure_is_enough_where_it_says_so() -> None:
    breaker = Breaker(threshold=3, rest=30)
    breaker.fail(0, at_once=True)
    assert not breaker.allows(29)


def test_only_one_at_a_time_tries_it_after_its_rest() -> None:
    breaker = broken(Breaker(rest=30), now=0)
    with breaker.asking():
        assert not breaker.allows(31)
    assert breaker.allows(31)


def test_who_gives_up_ends_no_probe_of_somebody_else() -> None:
    breaker = broken(Breaker(rest=30), now=0)
    with breaker.asking():
        with breaker.asking():  # had nobody else to ask, and was cancelled
            pass
        assert not breaker.allows(31)
    assert breaker.allows(31)


def test_who_asked_before_it_opened_is_no_probe() -> None:
    breaker = Breaker(threshold=1, rest=30)
    with breaker.asking():
        breaker.fail(0)
        assert breaker.allows(31)


def test_the_probe_closes_it() -> None:
    breaker = broken(Breaker(rest=30), now=0)
    with breaker.asking():
        breaker.succeed()
    breaker.fail(31)
    assert breaker.allows(31)


def test_a_probe_that_fails_makes_the_rest_twice_as_long_up_to_the_longest() -> None:
    breaker = broken(Breaker(rest=30, longest=100), now=0)
    rests = []
    now = 30.0
    for _ in range(3):
        with breaker.asking():
            breaker.fail(now)
        end = next(second for second in range(200) if breaker.allows(now + second))
        rests.append(end)
        now += end
    assert rests == [60, 100, 100]


def test_failures_while_it_rests_make_the_rest_no_longer() -> None:
    breaker = broken(Breaker(rest=30), now=0)
    for now in range(20):
        with breaker.asking():
            breaker.fail(now, at_once=now % 2 == 0)
    assert not breaker.allows(29)
    assert breaker.allows(30)


@given(st.lists(st.sampled_from(["fail", "succeed", "drop"])), st.integers(1, 5))
def test_it_is_never_shut_out_for_longer_than_its_longest_rest(ends: list[str], threshold: int) -> None:
    breaker, now = Breaker(threshold=threshold, rest=1, longest=50), 0.0
    for end in ends:
        with breaker.asking():
            match end:
                case "fail":
                    breaker.fail(now)
                case "succeed":
                    breaker.succeed()
                case _:
                    pass
        assert breaker.allows(now + 50)
        now += 7
