"""All parts of a cluster are asked at once, and each says how it is; who says nothing is named."""

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
from adapters.broker.status import ASKS, BrokerUnreachable, CommandResponder, ask_parts
from bot.runtime.clock import SystemClock
from tests.adapters.broker.street import PATIENCE
from tests.fakes import until


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
