"""A broker has one number of partitions."""

from __future__ import annotations

import asyncio

import aio_pika
import pytest
from aio_pika import Message
from aio_pika.abc import AbstractIncomingMessage

from adapters.broker import topology as module
from adapters.broker.topology import declare, queue_of
from bot.domain.errors import ConfigError
from tests.adapters.broker.conftest import PARTITIONS
from tests.adapters.broker.street import PATIENCE


async def test_who_comes_with_another_number_of_partitions_is_refused(broker: str) -> None:
    async with await aio_pika.connect(broker) as connection:
        topology = await declare(connection, await connection.channel(), PARTITIONS)
        assert [queue.name for queue in topology.partitions] == [queue_of(number) for number in range(PARTITIONS)]
        await declare(connection, await connection.channel(), PARTITIONS)
        with pytest.raises(ConfigError, match=f"BROKER_PARTITIONS: is {PARTITIONS + 1}"):
            await declare(connection, await connection.channel(), PARTITIONS + 1)


async def test_a_partition_that_another_version_has_made_stays_as_it_is(
    broker: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with await aio_pika.connect(broker) as connection:
        await declare(connection, await connection.channel(), PARTITIONS)
        channel = await connection.channel()
        await channel.default_exchange.publish(Message(b"kept"), queue_of(1))
        monkeypatch.setattr(module, "MOST", module.MOST - 1)
        topology = await declare(connection, channel, PARTITIONS)
        came: asyncio.Queue[AbstractIncomingMessage] = asyncio.Queue()
        await topology.partitions[1].consume(came.put)
        async with asyncio.timeout(PATIENCE):
            assert (await came.get()).body == b"kept"
        assert [queue.name for queue in topology.partitions] == [queue_of(number) for number in range(PARTITIONS)]
