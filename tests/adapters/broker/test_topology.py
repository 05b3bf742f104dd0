"""A broker has one number of partitions."""

from __future__ import annotations

import aio_pika
import pytest

from adapters.broker.topology import declare, queue_of
from bot.domain.errors import ConfigError
from tests.adapters.broker.conftest import PARTITIONS


async def test_who_comes_with_another_number_of_partitions_is_refused(broker: str) -> None:
    async with await aio_pika.connect(broker) as connection:
        topology = await declare(await connection.channel(), PARTITIONS)
        assert [queue.name for queue in topology.partitions] == [queue_of(number) for number in range(PARTITIONS)]
        await declare(await connection.channel(), PARTITIONS)
        with pytest.raises(ConfigError, match=f"BROKER_PARTITIONS: is {PARTITIONS + 1}"):
            await declare(await connection.channel(), PARTITIONS + 1)
