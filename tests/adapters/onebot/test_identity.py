"""Whose connection it is, and who is believed."""

from __future__ import annotations

from itertools import product

from adapters.onebot.account_resolver import AccountSource, Identity
from tests.cases import each_case

SAYING = [source for source in AccountSource if source is not AccountSource.NOBODY]


@each_case(("first", "second"), list(product(SAYING, SAYING)))
def test_the_better_source_is_believed_and_of_equal_ones_the_first(first: AccountSource, second: AccountSource) -> None:
    identity = Identity()
    assert identity.is_news(1, first)
    identity.learn(1, first)
    assert identity.is_news(2, second) is (second > first)
    assert not identity.is_news(1, second)
    identity.learn(2, second)
    assert identity.account == (2 if second > first else 1)
    assert identity.is_settled is (max(first, second) >= AccountSource.EVENT)


def test_who_says_the_same_better_is_believed_from_then_on() -> None:
    identity = Identity()
    identity.learn(1, AccountSource.HEADER)
    identity.learn(1, AccountSource.EVENT)
    assert identity.is_settled
    assert not identity.is_news(2, AccountSource.ANSWER)


@each_case("account", [0, -1])
def test_no_account_is_no_news(account: int) -> None:
    identity = Identity()
    assert not identity.is_news(account, AccountSource.TOKEN)
    identity.learn(account, AccountSource.TOKEN)
    assert (identity.account, identity.source) == (0, AccountSource.NOBODY)
