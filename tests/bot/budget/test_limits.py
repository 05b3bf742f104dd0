from __future__ import annotations

import math
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from bot.budget.limits import (
    LIFTED,
    NOTHING,
    Amount,
    Cap,
    DayLimits,
    LimitLevel,
    LimitOverride,
    limit_level,
    percent_of,
)
from tests.cases import each_case


@each_case(
    ("used", "rung"),
    [
        (0, LimitLevel.ALL),
        (0.69, LimitLevel.ALL),
        (0.7, LimitLevel.CHEAP),
        (0.849, LimitLevel.CHEAP),
        (0.85, LimitLevel.PLAIN),
        (0.949, LimitLevel.PLAIN),
        (0.95, LimitLevel.BARE),
        (0.999, LimitLevel.BARE),
        (1, LimitLevel.SPENT),
        (9, 100),
    ],
)
def test_any_of_three_sums_leads_up_the_ladder(used: float, rung: int) -> None:
    for shares in ((used, 0, 0), (0, used, 0), (0, 0, used), (used,)):
        assert limit_level(*shares, is_owner=False) == rung


def test_an_owner_has_everything_until_a_fifth_more_than_all_is_used() -> None:
    rungs = [limit_level(used, 9, 9, is_owner=True) for used in (0, 1.19, 1.2)]
    assert rungs == [LimitLevel.ALL, LimitLevel.ALL, LimitLevel.SPENT]


def test_the_share_is_the_larger_of_money_and_tokens_and_nothing_where_there_is_no_limit() -> None:
    amount = Amount(500, 0.5)
    assert [cap.used(amount) for cap in (Cap(), Cap(1.0), Cap(0, 600), Cap(2.0, 1000))] == [0, 0.5, 500 / 600, 0.5]
    assert amount.plus(amount).plus(Amount(-2 * amount.tokens, -2 * amount.cost)) == NOTHING
    assert DayLimits().are_off
    assert not DayLimits(all=Cap(tokens=1)).are_off


def test_the_cost_of_tokens_whose_price_nobody_knows_is_unknown() -> None:
    trace = Amount(0, 0.1).plus(Amount(0, 0.2)).plus(Amount(0, -0.3))
    told = [amount.known_cost for amount in (NOTHING, Amount(5), Amount(5, 0.2), trace, trace.plus(Amount(5)))]
    assert told == [0, None, 0.2, 0, None]


def test_what_an_owner_set_counts_in_place_of_the_usual_and_nothing_is_no_limit() -> None:
    usual = Cap(1.0, 100)
    told = [own.over(usual) for own in (LimitOverride(), LimitOverride(cost=5.0), LimitOverride(tokens=7), LIFTED)]
    assert told == [usual, Cap(5.0, 100), Cap(1.0, 7), Cap()]


@given(st.integers(0, 20_000), st.integers(1, 20_000))
def test_how_much_of_a_limit_is_used_is_rounded_down_from_what_it_really_is(used: int, most: int) -> None:
    share = Cap(most / 100).used(Amount(cost=used / 100))
    assert percent_of(share) == math.floor(100 * Fraction(used, most))


@each_case(("used", "most", "percent"), [(0.29, 1, 29), (0.57, 1, 57), (9.1, 10, 91), (1.15, 1, 115)])
def test_a_whole_percentage_is_told_as_it_is(used: float, most: float, percent: int) -> None:
    assert percent_of(Cap(most).used(Amount(cost=used))) == percent


def test_all_is_told_as_used_only_where_the_last_rung_is_reached() -> None:
    for share in (1 - 1e-6, 1 - 1e-12, math.nextafter(1, 0), 1.0):
        assert (percent_of(share) >= 100) is (limit_level(share, is_owner=False) is LimitLevel.SPENT), share
