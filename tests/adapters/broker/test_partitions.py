"""An account is in one partition, in every process and version, with all that is said to and by it."""

from __future__ import annotations

from adapters.broker.partitions import ClusterPartition, partition_of
from bot.core.conversation import NOWHERE, Conversation
from bot.core.other_bots import EVERY_ACCOUNT


def test_the_partition_of_an_account_is_the_one_that_it_always_was() -> None:
    assert [partition_of(account, 8) for account in (10001, 10002, 2854196310)] == [3, 1, 4]
    assert partition_of(10001, 64) == 19


def test_accounts_are_spread_over_all_partitions() -> None:
    counts = [0] * 8
    for account in range(2_854_196_310, 2_854_196_310 + 800):
        counts[partition_of(account, 8)] += 1
    assert sum(counts) == 800
    assert min(counts) > 80
    assert max(counts) < 120


def test_a_share_has_its_accounts_with_their_places_and_what_belongs_to_nobody() -> None:
    shares = [ClusterPartition(number, 8) for number in range(8)]
    assert [share.partition for share in shares if share.has(10001)] == [3]
    for where in (Conversation(10001, "group", 4242), Conversation(10001, "private", 10002)):
        assert [share.partition for share in shares if share.has_place(where)] == [3]
    assert all(share.has_place(NOWHERE) for share in shares)
    assert [share.is_first for share in shares] == [True, *[False] * 7]


def test_a_bot_alone_has_all_of_them() -> None:
    assert EVERY_ACCOUNT.is_first
    assert all(EVERY_ACCOUNT.has(account) for account in range(100))
