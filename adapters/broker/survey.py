"""How a broker stands, for somebody who looks at it from outside. Nothing is made or taken."""

from __future__ import annotations

from typing import Final

import aio_pika
from aio_pika.abc import AbstractConnection, AbstractIncomingMessage
from aio_pika.exceptions import ChannelNotFoundEntity
from msgspec import Struct

from adapters.broker.link import CONNECT_WITHIN, GONE, told_as_lost
from adapters.broker.payloads import HEADER_VERSION, Presence, unpack
from adapters.broker.topology import DEAD, NUMBER, PRESENCE, agree, queue_of
from bot.domain import codec
from bot.domain.errors import BotError
from bot.domain.ports import Clock

LISTENED: Final = 2.0  # seconds in which every gateway says something, of an older version too


class Unreachable(BotError):
    """There is no broker, or it lets nobody in; the reason in words."""


class Partition(Struct, frozen=True):
    """A partition's queue: how many events wait in it, and whether a worker takes them."""

    waiting: int
    is_worked: bool


class Survey(Struct, frozen=True):
    """The state of a broker: `version` is RabbitMQ's; no `partitions` where nobody has ever been
    there.

    `dead` is how many events were set aside; `gateways` are those that said something lately.
    """

    version: str
    partitions: tuple[Partition, ...] = ()
    dead: int = 0
    gateways: tuple[Presence, ...] = ()


async def survey(url: str, partitions: int, *, clock: Clock) -> Survey:
    """Look at it, for some two seconds. Raises Unreachable, and ConfigError where it has another
    number of partitions.
    """
    try:
        with told_as_lost():
            async with await aio_pika.connect(url, timeout=CONNECT_WITHIN) as connection:
                return await _look(connection, partitions, clock)
    except GONE as error:
        raise Unreachable(str(error) or type(error).__name__) from error


async def _look(connection: AbstractConnection, partitions: int, clock: Clock) -> Survey:
    version = _version_of(connection)
    if await _messages(connection, NUMBER) is None:
        return Survey(version)
    await agree(await connection.channel(), partitions)
    found = []
    for number in range(partitions):
        waiting, consumers = await _messages(connection, queue_of(number)) or (0, 0)
        found.append(Partition(waiting, consumers > 0))
    dead, _ = await _messages(connection, DEAD) or (0, 0)
    return Survey(version, tuple(found), dead, await _gateways(connection, clock))


async def _messages(connection: AbstractConnection, queue: str) -> tuple[int, int] | None:
    """How many messages are ready in a queue, and who consumes it; None where there is none."""
    channel = await connection.channel()  # closed by the broker where there is none
    try:
        declared = (await channel.declare_queue(queue, passive=True)).declaration_result
    except ChannelNotFoundEntity:
        return None
    await channel.close()
    return declared.message_count or 0, declared.consumer_count or 0


async def _gateways(connection: AbstractConnection, clock: Clock) -> tuple[Presence, ...]:
    heard: dict[str, Presence] = {}

    async def hear(message: AbstractIncomingMessage) -> None:
        try:
            told = unpack(Presence, message.body, message.headers.get(HEADER_VERSION))
        except codec.Unreadable:
            return
        heard[told.gateway] = told

    channel = await connection.channel()
    ear = await channel.declare_queue(exclusive=True, auto_delete=True)
    await ear.bind(PRESENCE)
    await ear.consume(hear, no_ack=True)
    await clock.sleep(LISTENED)
    return tuple(heard[name] for name in sorted(heard))


def _version_of(connection: AbstractConnection) -> str:
    told = getattr(connection.transport, "connection", None)
    properties = getattr(told, "server_properties", {})
    return str(properties.get("version", ""))
