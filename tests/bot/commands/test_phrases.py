from __future__ import annotations

import time

from bot.commands.phrases import money, tokens, used_words
from bot.core.command import at_time
from bot.core.query_results import UsageSum
from bot.policy.day_limits import Amount, Cap
from tests.bot.commands.typed import asked

NOON = time.mktime((2026, 3, 2, 12, 0, 0, 0, 0, -1))


def test_a_time_of_another_day_is_told_with_that_day() -> None:
    assert at_time(NOON + 5400, NOON) == "13:30"
    assert at_time(NOON + 86_400, NOON) == "03-03 12:00"


def test_tokens_are_told_short() -> None:
    assert [tokens(number) for number in (0, 999, 1000, 12_345, 1_234_567)] == ["0", "999", "1.0k", "12.3k", "1.2M"]


def test_what_nobody_knows_the_price_of_is_told_so() -> None:
    assert money(UsageSum()) == "$0.0000"
    assert money(UsageSum(requests=2, cost=0.01234)) == "$0.0123"
    assert money(UsageSum(requests=2, cost=12.3456)) == "$12.35"
    assert money(UsageSum(requests=2, cost=0.5, unpriced=1)) == "$0.5000+?"
    assert money(UsageSum(requests=2, unpriced=2)) == "$?"


def test_of_a_limit_that_is_not_all_used_it_is_never_said_that_it_is() -> None:
    told = [used_words(asked(), "#1", Cap(tokens=1000), Amount(taken)) for taken in (0, 996, 999, 1000, 1007)]
    assert [line.rpartition("用了 ")[2] for line in told] == ["0%", "99%", "99%", "100%", "100%"]
