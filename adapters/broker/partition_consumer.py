"""Consumes the events of one partition; each is acknowledged once the journal has its results."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from hashlib import blake2b
from typing import Any, Final, NoReturn

from aio_pika.abc import AbstractConnection
from msgspec.structs import astuple, replace

from adapters.broker.account_locations import AccountLocations
from adapters.broker.link import watch
from adapters.broker.payloads import HEADER_GATEWAY, HEADER_TAKEN, HEADER_VERSION, unpack
from adapters.broker.queries import ClusterHandlers
from adapters.broker.topology import DEAD, queue_of
from adapters.broker.wire import (
    Delivered,
    acknowledge,
    consume,
    headers_of,
    reject,
    returns_of,
)
from bot.core import codec
from bot.core.conversation import shared_place
from bot.core.events import Event, MessageReceived, MessageWaited
from bot.core.language import CATALOGUE, NotifyOwners, Phrase
from bot.core.ports import EventSink
from frostagent.types.ports import Clock

PREFETCH: Final = 1000  # unacknowledged events of a partition
TRIES: Final = 3  # to handle an event
MOST_FAILING: Final = 1000  # events whose failures are counted
DOUBTED: Final = 3  # redeliveries of an event that may crash its worker, or is next to one
DEADLY: Final = 3  # workers that crashed while handling it
LONG: Final = 30.0  # seconds an event may take to arrive normally
GATHERED: Final = 0.05  # seconds in which events gather, as each acknowledgement costs a commit
AGAIN: Final = 0.5  # seconds until an unavailable journal is tried again
PATIENCE: Final = 6.0  # seconds without a journal, by which a lease on the partition has expired

UNREADABLE: Final = Phrase(
    "有一个来自 gateway 的事件读不懂 ({why})，放进了队列 {queue}。集群各部分的版本相差太多吗？",
    "An event from a gateway cannot be read ({why}). It is kept in the queue {queue};"
    " are all parts of the cluster of about the same version?",
)
UNHANDLED: Final = Phrase(
    "有一个事件处理不了 (试了 {times} 次)，放进了队列 {queue}；详情在日志里。",
    "An event could not be handled ({times} times). It is kept in the queue {queue};"
    " the log says more.",
)
ENDS_WORKERS: Final = Phrase(
    "有一个事件，worker 一处理就退出 (试了 {times} 次)，放进了队列 {queue}；"
    "请把它和日志留给我们看。",
    "Workers ended while they handled an event ({times} times). It is kept in the queue"
    " {queue}; please keep it and the logs for us.",
)
CATALOGUE.register(__name__, globals())

logger = logging.getLogger(__name__)


class PartitionConsumer:
    """Consumes the partition of `where`.

    An event goes to the queue frost.dead if it cannot be read, if handling it failed three times,
    or if it crashes its worker: the broker redelivers the events of a dead worker, and for events
    redelivered often the journal records which one was begun. `trouble` reports this, `lay_aside`
    counts it.
    """

    def __init__(
        self,
        where: AccountLocations,
        *,
        clock: Clock,
        trouble: NotifyOwners,
        lay_aside: Callable[[], None],
    ) -> None:
        self._where = where
        self._clock = clock
        self._trouble = trouble
        self._lay_aside = lay_aside
        self._kept: list[Delivered] = []
        self._due = asyncio.Event()
        self._failures: dict[int, int] = {}  # by event; a broker counts all redeliveries
        self.acknowledged = 0

    async def run(
        self,
        connection: AbstractConnection,
        come: Callable[[Delivered], Coroutine[Any, Any, None]],
        durable: Callable[[], Awaitable[bool]],
    ) -> NoReturn:
        """Pass events to `come`, for ever; `durable` is the worker's. Raises ConnectionLost and
        aio-pika's errors.

        If the journal is away for longer than a lease lasts, another worker may have taken over:
        all unacknowledged events go back to the broker until the journal is back.
        """
        while True:
            channel = await connection.channel()
            await channel.set_qos(prefetch_count=PREFETCH)
            self._kept.clear()
            self._due.clear()
            await consume(channel, queue_of(self._where.share.partition), come)
            async with asyncio.TaskGroup() as group:
                watching = group.create_task(watch(channel))
                await self._acknowledge(durable)
                watching.cancel()
            await channel.close()
            logger.warning("the journal is away: events are left to whoever can reach it")
            await self._until(durable)

    async def _until(self, durable: Callable[[], Awaitable[bool]]) -> None:
        while not await durable():
            await self._clock.sleep(AGAIN)

    async def process(self, message: Delivered, sink: EventSink, handlers: ClusterHandlers) -> None:
        if message.channel.is_closed:
            return  # it is redelivered, here or elsewhere
        if returns_of(message) < DOUBTED:
            await self._handle(message, sink)
            return
        event = blake2b(message.body, digest_size=16).hexdigest()
        try:
            times = await handlers.begin_event(event)
            if times < DEADLY:
                await self._handle(message, sink)
            else:
                logger.error("%d workers ended at an event: it is kept in %s", times, DEAD)
                self._lay_aside()
                self._trouble(ENDS_WORKERS.fill(times=times, queue=DEAD))
                await reject(message)
        finally:
            handlers.end_event(event)

    async def _handle(self, message: Delivered, sink: EventSink) -> None:
        try:
            event: Event = unpack(Event, message.body, headers_of(message).get(HEADER_VERSION))
        except codec.Unreadable as error:
            logger.exception("an event cannot be read, and is kept in %s", DEAD)
            self._lay_aside()
            self._trouble(UNREADABLE.fill(why=str(error)[:200], queue=DEAD))
            await reject(message)
            return
        try:
            await sink.handle(self._as_it_came(event, message))
        except Exception:  # a bug of ours: later events must not wait for it
            logger.exception("an event was not handled")
            await self._give_back(message)
        else:
            self._kept.append(message)
            self._due.set()

    def _as_it_came(self, event: Event, message: Delivered) -> Event:
        """Wrap a message that waited long in `MessageWaited`."""
        if not isinstance(event, MessageReceived):
            return event
        event = replace(event, conversation=shared_place(*astuple(event.conversation)))
        headers = headers_of(message)
        taken = headers.get(HEADER_TAKEN)
        if not isinstance(taken, int):
            return event
        seconds = self._where.seconds_since(str(headers.get(HEADER_GATEWAY)), taken / 1000)
        if seconds < LONG:
            return event
        return MessageWaited(self_id=event.self_id, time=event.time, message=event, seconds=seconds)

    async def _give_back(self, message: Delivered) -> None:
        """Requeue the event, or make it a dead letter after TRIES failures."""
        event = hash(message.body)
        tries = self._failures.pop(event, 0) + 1
        if tries < TRIES:
            if len(self._failures) >= MOST_FAILING:  # the oldest may have gone to another worker
                del self._failures[next(iter(self._failures))]
            self._failures[event] = tries
        else:
            self._lay_aside()
            self._trouble(UNHANDLED.fill(times=tries, queue=DEAD))
        await reject(message, requeue=tries < TRIES)

    async def _acknowledge(self, durable: Callable[[], Awaitable[bool]]) -> None:
        """Acknowledge events until the journal is away for too long."""
        while True:
            await self._due.wait()
            await self._clock.sleep(GATHERED)
            self._due.clear()
            handled, self._kept = self._kept, []
            try:
                async with asyncio.timeout(PATIENCE):
                    await self._until(durable)
            except TimeoutError:
                return
            # All events before the last were handled, or given back.
            await acknowledge(handled[-1])
            self.acknowledged += len(handled)
