"""One real RabbitMQ for these tests, empty before each of them."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator

import aio_pika
import pytest

from adapters.broker.status import ASKS
from adapters.broker.topology import DEAD, EVENTS, NOTES, NUMBER, PRESENCE, QUESTIONS, queue_of
from tests.rabbit import Rabbit, running

PARTITIONS = 3


@pytest.fixture(scope="session")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rabbit | None]:
    """The tests' own; None where another is named, which is let alone."""
    if os.environ.get("FROST_TEST_BROKER"):
        yield None
        return
    with running(tmp_path_factory.mktemp("rabbit") / "node") as rabbit:
        yield rabbit


@pytest.fixture(scope="session")
def rabbit_url(node: Rabbit | None) -> str:
    return node.url if node else os.environ["FROST_TEST_BROKER"]


@pytest.fixture
def own_node(node: Rabbit | None, broker: str) -> Rabbit:
    """One that may be hurt."""
    if node is None:
        pytest.skip(f"FROST_TEST_BROKER is {broker}: it is not ours")
    return node


@pytest.fixture
async def broker(rabbit_url: str) -> AsyncIterator[str]:
    await clear(rabbit_url)
    yield rabbit_url
    await clear(rabbit_url)


async def clear(url: str) -> None:
    async with await aio_pika.connect(url) as connection, connection.channel() as channel:
        for queue in (NUMBER, DEAD, *map(queue_of, range(64))):
            await channel.queue_delete(queue)
        for exchange in (ASKS, EVENTS, NOTES, PRESENCE, QUESTIONS):
            await channel.exchange_delete(exchange)
