"""A conversation is in one partition, in every process and version; a broker has one number of them."""

from __future__ import annotations

import aio_pika
import pytest

from adapters.broker.topology import declare, partition_of, queue_of
from bot.domain.errors import ConfigError
from bot.domain.events import AccountChanged, Conversation, MessageRecalled, Muted
from tests.adapters.broker.conftest import PARTITIONS

GROUP = Conversation(10001, "group", 4242)
RECALLED = MessageRecalled(self_id=10001, time=0, conversation=GROUP, message_id="1", user_id=2, operator_id=2)


def test_the_partition_of_a_conversation_is_the_one_that_it_always_was() -> None:
    muted = Muted(self_id=10001, time=0, conversation=GROUP, user_id=0, operator_id=2, seconds=60)
    assert partition_of(RECALLED, 64) == partition_of(muted, 64) == 6
    assert partition_of(AccountChanged(self_id=10001, time=0, online=False), 64) == 19


def test_conversations_are_spread_over_all_partitions() -> None:
    places = [Conversation(10001, "group", number) for number in range(6400)]
    counts = [0] * 64
    for place in places:
        event = MessageRecalled(self_id=1, time=0, conversation=place, message_id="1", user_id=2, operator_id=2)
        counts[partition_of(event, 64)] += 1
    assert min(counts) > 50
    assert max(counts) < 150


async def test_who_comes_with_another_number_of_partitions_is_refused(broker: str) -> None:
    async with await aio_pika.connect(broker) as connection:
        topology = await declare(await connection.channel(), PARTITIONS)
        assert [queue.name for queue in topology.partitions] == [queue_of(number) for number in range(PARTITIONS)]
        await declare(await connection.channel(), PARTITIONS)
        with pytest.raises(ConfigError, match=f"BROKER_PARTITIONS: is {PARTITIONS + 1}"):
            await declare(await connection.channel(), PARTITIONS + 1)
