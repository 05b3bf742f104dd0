"""The state of a broker and of the cluster's parts, read from outside without changing anything;
and each part's answers to operators' commands.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Final, NoReturn, TypeAlias

import aio_pika
from aio_pika import DeliveryMode, ExchangeType, Message
from aio_pika.abc import AbstractChannel, AbstractConnection, AbstractIncomingMessage
from aio_pika.exceptions import ChannelNotFoundEntity
from msgspec import Struct

from adapters.broker.link import CONNECT_WITHIN, GONE, BrokerLink, in_tasks, raise_as_lost, watch
from adapters.broker.payloads import (
    HEADER_VERSION,
    VERSION,
    PartAnswer,
    PartsAsked,
    Presence,
    pack,
    unpack,
)
from adapters.broker.topology import DEAD, NUMBER, PRESENCE, agree, queue_of
from bot.core import codec
from frostagent.types.errors import BotError
from frostagent.types.ports import Clock

LISTENED: Final = 2.0  # seconds in which every gateway announces itself, older versions included


class BrokerUnreachable(BotError):
    """The broker cannot be reached, or rejects the connection; the text says why."""


class PartitionStatus(Struct, frozen=True):
    """A partition's queue: its number of events, and whether a worker consumes it."""

    waiting: int
    is_worked: bool


class BrokerStatus(Struct, frozen=True):
    """The state of a broker: `version` is RabbitMQ's; `partitions` is empty if no part of a cluster
    has ever connected.

    `dead` is the number of dead letters; `gateways` are those that announced themselves.
    """

    version: str
    partitions: tuple[PartitionStatus, ...] = ()
    dead: int = 0
    gateways: tuple[Presence, ...] = ()


async def read_status(url: str, partitions: int, *, clock: Clock) -> BrokerStatus:
    """Read the state of a broker, in about two seconds. Raises BrokerUnreachable, and ConfigError
    if it has another number of partitions.
    """
    try:
        with raise_as_lost():
            async with await aio_pika.connect(url, timeout=CONNECT_WITHIN) as connection:
                return await _look(connection, partitions, clock)
    except GONE as error:
        raise BrokerUnreachable(str(error) or type(error).__name__) from error


async def _look(connection: AbstractConnection, partitions: int, clock: Clock) -> BrokerStatus:
    version = _version_of(connection)
    if await _messages(connection, NUMBER) is None:
        return BrokerStatus(version)
    await agree(await connection.channel(), partitions)
    found = []
    for number in range(partitions):
        waiting, consumers = await _messages(connection, queue_of(number)) or (0, 0)
        found.append(PartitionStatus(waiting, consumers > 0))
    dead, _ = await _messages(connection, DEAD) or (0, 0)
    return BrokerStatus(version, tuple(found), dead, await _gateways(connection, clock))


async def _messages(connection: AbstractConnection, queue: str) -> tuple[int, int] | None:
    """The number of messages and consumers of a queue; None if it does not exist."""
    channel = await connection.channel()  # the broker closes it if there is no queue
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


ASKS: Final = "frost.asks"
HERE: Final = "here"
"""The command that every part answers at once with its name."""

SECONDS: Final = 2.0  # in which a healthy part answers it

logger = logging.getLogger(__name__)

Commands: TypeAlias = Mapping[str, Callable[[], Awaitable[Mapping[str, Any]]]]


class CommandResponder:
    """Answers operators' commands for one part of the cluster; its `name` is unique."""

    def __init__(self, name: str, *, link: BrokerLink, commands: Commands) -> None:
        self._name = name
        self._link = link
        self._commands = commands

    async def run(self) -> NoReturn:
        """Answer commands for ever. Raises ConfigError."""
        await self._link.keep(self._session)

    async def _session(self, connection: AbstractConnection) -> None:
        channel = await connection.channel()
        asks = await channel.declare_exchange(ASKS, ExchangeType.FANOUT, durable=True)
        ear = await channel.declare_queue(exclusive=True, auto_delete=True)
        await ear.bind(asks)
        async with asyncio.TaskGroup() as group:
            await ear.consume(in_tasks(group, partial(self._answer, channel)), no_ack=True)
            self._link.is_up = True
            await watch(channel)

    async def _answer(self, channel: AbstractChannel, message: AbstractIncomingMessage) -> None:
        told = PartAnswer(self._name, await self._told(message))
        if message.reply_to:
            reply = _message(pack(told), correlation=message.correlation_id)
            await channel.default_exchange.publish(reply, message.reply_to, mandatory=False)

    async def _told(self, message: AbstractIncomingMessage) -> Mapping[str, Any]:
        try:
            asked: PartsAsked = unpack(
                PartsAsked, message.body, message.headers.get(HEADER_VERSION)
            )
        except codec.Unreadable as error:
            logger.exception("what the cluster is asked cannot be read")
            return {"error": str(error)}
        if asked.command == HERE:
            return {}
        if (command := self._commands.get(asked.command)) is None:
            return {"error": f"it knows no {asked.command}: it is of another version"}
        try:
            return await command()
        except Exception as error:
            logger.exception("%s could not be done", asked.command)
            return {"error": f"{type(error).__name__}; its log says why"}


async def ask_parts(
    url: str, command: str, *, within: float
) -> dict[str, Mapping[str, Any] | None]:
    """The answers of all present parts, by name; None for a part that did not answer `within`
    seconds. Raises BrokerUnreachable.
    """
    try:
        with raise_as_lost():
            async with await aio_pika.connect(url, timeout=CONNECT_WITHIN) as connection:
                async with asyncio.timeout(SECONDS + within + CONNECT_WITHIN):
                    return await _ask(connection, command, within)
    except GONE as error:
        raise BrokerUnreachable(str(error) or type(error).__name__) from error


async def _ask(
    connection: AbstractConnection, command: str, within: float
) -> dict[str, Mapping[str, Any] | None]:
    channel = await connection.channel()
    asks = await channel.declare_exchange(ASKS, ExchangeType.FANOUT, durable=True)
    answers: asyncio.Queue[AbstractIncomingMessage] = asyncio.Queue()
    ear = await channel.declare_queue(exclusive=True, auto_delete=True)
    await ear.consume(answers.put, no_ack=True)
    found: dict[str, dict[str, Mapping[str, Any]]] = {HERE: {}, command: {}}

    async def call(word: str, seconds: float, of: Collection[str] | None) -> None:
        asked = _message(pack(PartsAsked(word)), correlation=word, reply=ear.name)
        await asks.publish(asked, "", mandatory=False)
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while of is None or not found[word].keys() >= set(of):
                    message = await answers.get()
                    version = message.headers.get(HEADER_VERSION)
                    try:
                        told: PartAnswer = unpack(PartAnswer, message.body, version)
                    except codec.Unreadable:  # a newer version: counts as no answer
                        logger.exception("what a part of the cluster answers cannot be read")
                    else:
                        found.get(message.correlation_id or HERE, {})[told.name] = told.answer

    await call(HERE, SECONDS, None)
    await call(command, within, found[HERE])
    await channel.close()
    return {name: found[command].get(name) for name in sorted(found[HERE] | found[command])}


def _message(body: bytes, *, correlation: str | None, reply: str | None = None) -> Message:
    return Message(
        body,
        headers={HEADER_VERSION: VERSION},
        content_type="application/json",
        delivery_mode=DeliveryMode.NOT_PERSISTENT,
        correlation_id=correlation,
        reply_to=reply,
    )
