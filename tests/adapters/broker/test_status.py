"""Somebody looks at a broker, and changes nothing there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, NoReturn

import aio_pika
import pytest
from aio_pika import Message
from aio_pika.abc import AbstractIncomingMessage

from adapters.broker import status as module
from adapters.broker.link import BrokerLink
from adapters.broker.status import ASKS, BrokerUnreachable, CommandResponder, PartitionStatus, ask_parts, read_status
from adapters.broker.topology import DEAD, NUMBER, queue_of
from frostagent.clock import SystemClock
from frostagent.types.errors import ConfigError
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


@asynccontextmanager
async def part(url: str, name: str, how: Callable[[], Awaitable[Mapping[str, Any]]]) -> AsyncIterator[None]:
    link = BrokerLink(url, clock=SystemClock(), trouble=lambda _: None)
    async with asyncio.TaskGroup() as group:
        running = group.create_task(CommandResponder(name, link=link, commands={"status": how}).run())
        await until(lambda: link.is_up, seconds=PATIENCE)
        yield
        running.cancel()


async def well() -> Mapping[str, Any]:
    return {"state": "well"}


async def broken() -> Mapping[str, Any]:
    raise ZeroDivisionError("a secret of ours")


async def frozen() -> Mapping[str, Any]:
    return await asyncio.Future()


async def test_every_part_answers_for_itself_and_who_cannot_or_does_not_is_named(
    broker: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with AsyncExitStack() as stack:
        for name, how in (("a", well), ("b", broken), ("c", frozen)):
            await stack.enter_async_context(part(broker, name, how))
        assert await ask_parts(broker, "status", within=0.5) == {
            "a": {"state": "well"},
            "b": {"error": "ZeroDivisionError; its log says why"},
            "c": None,
        }
        older = "it knows no dance: it is of another version"
        assert await ask_parts(broker, "dance", within=PATIENCE) == {name: {"error": older} for name in "abc"}
    assert "status could not be done" in caplog.text


async def test_where_nobody_is_nobody_answers_and_without_a_broker_that_is_said(
    broker: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SECONDS", 0.1)
    assert await ask_parts(broker, "status", within=PATIENCE) == {}
    with pytest.raises(BrokerUnreachable):
        await ask_parts("amqp://127.0.0.1:1/", "status", within=PATIENCE)


@pytest.mark.parametrize(
    ("end", "told"), [(Exception(), BrokerUnreachable), (ZeroDivisionError("a bug"), ZeroDivisionError)]
)
async def test_a_broker_that_goes_while_parts_are_asked_cannot_be_reached_whatever_the_library_calls_it(
    broker: str, monkeypatch: pytest.MonkeyPatch, end: Exception, told: type[Exception]
) -> None:
    async def ended(*_: object) -> NoReturn:
        raise end

    monkeypatch.setattr(module, "_ask", ended)
    with pytest.raises(told):
        await ask_parts(broker, "status", within=PATIENCE)


async def test_what_cannot_be_read_is_answered_as_such_and_ends_nobody(broker: str) -> None:
    async with part(broker, "a", well), await aio_pika.connect(broker) as connection:
        channel = await connection.channel()
        ear = await channel.declare_queue(exclusive=True)
        asks = await channel.get_exchange(ASKS)
        await asks.publish(Message(b"?", headers={"version": 1}), "")
        await asks.publish(Message(b"?", headers={"version": 99}, reply_to=ear.name), "")
        told: asyncio.Queue[AbstractIncomingMessage] = asyncio.Queue()
        await ear.consume(told.put, no_ack=True)
        async with asyncio.timeout(PATIENCE):
            assert b"it is of version 99" in (await told.get()).body
        assert await ask_parts(broker, "status", within=PATIENCE) == {"a": {"state": "well"}}


async def test_a_part_whose_answer_cannot_be_read_keeps_nobodys_answer_back(
    broker: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with part(broker, "a", well), await aio_pika.connect(broker) as connection:
        channel = await connection.channel()
        ear = await channel.declare_queue(exclusive=True)
        await ear.bind(await channel.get_exchange(ASKS))

        async def newer(message: AbstractIncomingMessage) -> None:
            for word in (message.correlation_id, "elsewhere"):
                body, headers = b'{"name": "b"}', {"version": 99 if word != "elsewhere" else 1}
                told = Message(body, headers={**headers}, correlation_id=word)
                await channel.default_exchange.publish(told, message.reply_to or "", mandatory=False)

        await ear.consume(newer, no_ack=True)
        assert await ask_parts(broker, "status", within=PATIENCE) == {"a": {"state": "well"}}
    assert "what a part of the cluster answers cannot be read" in caplog.text
