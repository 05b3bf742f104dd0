"""Somebody looks at a broker, and changes nothing there."""

from __future__ import annotations

from typing import NoReturn

import aio_pika
import pytest
from aio_pika import Message

from adapters.broker import status as module
from adapters.broker.status import BrokerUnreachable, PartitionStatus, read_status
from adapters.broker.topology import DEAD, NUMBER, queue_of
from bot.domain.errors import ConfigError
from bot.runtime.clock import SystemClock
from tests.adapters.broker.conftest import PARTITIONS
from tests.adapters.broker.street import ACCOUNT, PATIENCE, SHARE, Desk, Sockets, gateway_of, said, worker_of
from tests.fakes import until

CLOCK = SystemClock()


async def test_an_empty_broker_stays_empty(broker: str) -> None:
    found = await read_status(broker, PARTITIONS, clock=CLOCK)
    assert (found.partitions, found.gateways, found.dead) == ((), (), 0)
    assert found.version.startswith("3.") or int(found.version.partition(".")[0]) > 3
    async with await aio_pika.connect(broker) as connection:
        for name in (NUMBER, DEAD, queue_of(0)):
            with pytest.raises(aio_pika.exceptions.ChannelNotFoundEntity):
                await (await connection.channel()).declare_queue(name, passive=True)


async def test_what_waits_who_works_and_who_is_there_is_seen(broker: str) -> None:
    async with gateway_of(broker, Sockets()) as gateway:
        for number in range(3):
            await gateway.handle(said(number))
        await gateway.wait_published()
        async with await aio_pika.connect(broker) as connection:
            channel = await connection.channel()
            await channel.default_exchange.publish(Message(b"?"), DEAD)
        found = await read_status(broker, PARTITIONS, clock=CLOCK)
        ours = [PartitionStatus(3 if number == SHARE.partition else 0, is_worked=False) for number in range(PARTITIONS)]
        assert (found.partitions, found.dead) == (tuple(ours), 1)
        assert [[one.self_id for one in told.accounts] for told in found.gateways] == [[ACCOUNT]]
        desk = Desk()
        async with worker_of(broker, desk):
            await until(lambda: len(desk.numbers) == 3, seconds=PATIENCE)
            worked = (await read_status(broker, PARTITIONS, clock=CLOCK)).partitions
    assert [one.is_worked for one in worked] == [number == SHARE.partition for number in range(PARTITIONS)]


async def test_another_number_of_partitions_is_told(broker: str) -> None:
    async with gateway_of(broker, Sockets()) as gateway:
        await gateway.handle(said(1))
        await gateway.wait_published()
    with pytest.raises(ConfigError, match="BROKER_PARTITIONS"):
        await read_status(broker, PARTITIONS + 1, clock=CLOCK)


@pytest.mark.parametrize(
    ("end", "told"), [(Exception(), BrokerUnreachable), (ZeroDivisionError("a bug"), ZeroDivisionError)]
)
async def test_a_broker_that_goes_while_it_is_looked_at_cannot_be_reached_whatever_the_library_calls_it(
    broker: str, monkeypatch: pytest.MonkeyPatch, end: Exception, told: type[Exception]
) -> None:
    async def ended(*_: object) -> NoReturn:
        raise end

    monkeypatch.setattr(module, "_look", ended)
    with pytest.raises(told, match="it has closed the connection" if told is BrokerUnreachable else "a bug"):
        await read_status(broker, PARTITIONS, clock=CLOCK)


@pytest.mark.parametrize("url", ["amqp://127.0.0.1:1/", "amqp://guest:wrong@{there}/"])
async def test_a_broker_that_is_away_or_lets_nobody_in_is_told_without_its_password(broker: str, url: str) -> None:
    with pytest.raises(BrokerUnreachable) as caught:
        await read_status(url.format(there=broker.rpartition("@")[2].rstrip("/")), PARTITIONS, clock=CLOCK)
    assert str(caught.value)
    assert "wrong" not in str(caught.value)
