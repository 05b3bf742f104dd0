from __future__ import annotations

from bot.commands.money import money, tokens
from bot.domain.books import UsageSum


def test_tokens_are_told_short() -> None:
    assert [tokens(number) for number in (0, 999, 1000, 12_345, 1_234_567)] == ["0", "999", "1.0k", "12.3k", "1.2M"]


def test_what_nobody_knows_the_price_of_is_told_so() -> None:
    assert money(UsageSum()) == "$0.0000"
    assert money(UsageSum(requests=2, cost=0.01234)) == "$0.0123"
    assert money(UsageSum(requests=2, cost=12.3456)) == "$12.35"
    assert money(UsageSum(requests=2, cost=0.5, unpriced=1)) == "$0.5000+?"
    assert money(UsageSum(requests=2, unpriced=2)) == "$?"
