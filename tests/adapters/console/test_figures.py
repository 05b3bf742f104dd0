from __future__ import annotations

from adapters.console.language import lasting, money, share, tokens
from bot.core.query_results import UsageSum


def test_numbers_are_short() -> None:
    assert [tokens(number) for number in (980, 12_345, 1_200_000)] == ["980", "12.3k", "1.2M"]
    assert [" ".join(lasting(number)) for number in (0.05, 0.412, 4.12, 119.9, 492, 9_000, 604_800)] == [
        "50 ms",
        "0.41 s",
        "4.1 s",
        "119.9 s",
        "8 min",
        "2 h",
        "7 d",
    ]
    assert [share(71, 100), share(1, 0)] == ["71%", "0%"]


def test_what_nobody_knows_the_price_of_is_marked() -> None:
    sums = (UsageSum(2, cost=0.0038), UsageSum(2, cost=1.2, unpriced=1), UsageSum(2, unpriced=2), UsageSum())
    assert [money(used) for used in sums] == ["$0.0038", "$1.20+?", "$?", "$0.0000"]
    # Parts of requests, as tools have them: less than half of one is no request.
    assert [money(UsageSum(0, unpriced=1)), money(UsageSum(1, cost=1.0, unpriced=1))] == ["$?", "$1.00+?"]
