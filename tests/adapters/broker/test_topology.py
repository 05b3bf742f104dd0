"""A broker has one number of partitions."""

from __future__ import annotations

import asyncio

import aio_pika
import pytest
from aio_pika import Message
from aio_pika.abc import AbstractIncomingMessage
from pamqp.common import FieldValue

from adapters.broker import topology as module
from adapters.broker.topology import DEAD, declare, queue_of
from frostagent.types.errors import ConfigError
from tests.adapters.broker.conftest import PARTITIONS
from tests.adapters.broker.street import PATIENCE

ARGUMENTS: dict[str, FieldValue] = {
    "x-queue-type": "quorum",
    "x-single-active-consumer": True,
    "x-dead-letter-exchange": "",
    "x-dead-letter-routing-key": DEAD,
    "x-overflow": "reject-publish",
}


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


@pytest.mark.parametrize(
    ("version", "limit"),
    [("3.10.8", {}), ("3.13.7", {}), ("4.0.1", {"x-delivery-limit": -1}), ("10.2", {"x-delivery-limit": -1}), ("", {})],
)
async def test_a_broker_that_drops_what_came_back_often_is_told_not_to(
    broker: str, version: str, limit: dict[str, int]
) -> None:
    async with await aio_pika.connect(broker) as connection:
        assert connection.transport is not None
        connection.transport.connection.server_properties["version"] = version
        await declare(connection, await connection.channel(), PARTITIONS)
        for number in range(PARTITIONS):  # one that is declared otherwise is refused
            arguments: dict[str, FieldValue] = {**ARGUMENTS, "x-max-length": module.MOST, **limit}
            channel = await connection.channel()
            await channel.declare_queue(queue_of(number), durable=True, arguments=arguments)
