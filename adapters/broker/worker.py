"""The workers' side: events in, each acknowledged once the journal has it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final, NoReturn

from aio_pika.abc import AbstractConnection, AbstractIncomingMessage
from msgspec.structs import replace

from adapters.broker.asks import Asks
from adapters.broker.calls import Calls
from adapters.broker.link import Link, watch
from adapters.broker.notices import Notices
from adapters.broker.payloads import (
    HEADER_GATEWAY,
    HEADER_TAKEN,
    HEADER_VERSION,
    Presence,
    unpack,
)
from adapters.broker.topology import DEAD, declare
from adapters.broker.whereabouts import Whereabouts
from bot.domain import codec
from bot.domain.asks import Ears
from bot.domain.events import Connected, Event, MessageReceived, MessageWaited
from bot.domain.notes import Alarmed, Forgotten, Note, PlaceTold, RowSet, Taken
from bot.domain.ports import Clock, EventSink
from bot.domain.tongue import Tell, filled

PREFETCH: Final = 1000  # events of a partition that are not acknowledged
TRIES: Final = 3  # of an event that cannot be handled
COUNTED: Final = "x-delivery-count"  # how often a quorum queue has had it back
LONG: Final = 30.0  # seconds in which an event is here where all is well
LATELY: Final = 600.0  # seconds in which a loss is news to who had not heard of it
GATHERED: Final = 0.05  # seconds in which events gather: for each acknowledgement there is a commit
AGAIN: Final = 0.5  # seconds until a journal in trouble is asked once more

UNREADABLE: Final = (
    "有一个来自 gateway 的事件读不懂 ({why})，放进了队列 {queue}。集群各部分的版本相差太多吗？",
    (
        "An event from a gateway cannot be read ({why}). It is kept in the queue {queue};"
        " are all parts of the cluster of about the same version?"
    ),
)
LOST: Final = (
    (
        "网关丢了事件 (至今 {lost} 个)：RabbitMQ 收不下，或者它们的分区满了。"
        "请看看 RabbitMQ 和 worker 是否都在运行；worker 和分区多一些，收得就多一些。"
    ),
    (
        "A gateway has lost events ({lost} so far): the broker took no more of them, or their"
        " partition was full. See that RabbitMQ and the workers run; more workers and partitions"
        " take more."
    ),
)
UNHANDLED: Final = (
    "有一个事件处理不了 (试了 {times} 次)，放进了队列 {queue}；详情在日志里。",
    (
        "An event could not be handled ({times} times). It is kept in the queue {queue};"
        " the log says more."
    ),
)

logger = logging.getLogger(__name__)


class Worker:
    """Takes events from one partition, and hears which gateway has which account.

    An event that cannot be read, or thrice not be handled, is set aside in the queue frost.dead,
    which `trouble` is told, and `lay_aside` counts.
    """

    def __init__(
        self,
        *,
        link: Link,
        where: Whereabouts,
        calls: Calls,
        notices: Notices,
        asks: Asks,
        clock: Clock,
        trouble: Tell,
        lay_aside: Callable[[], None],
    ) -> None:
        self._link = link
        self._share = where.share
        self._where = where
        self._calls = calls
        self._notices = notices
        self._asks = asks
        self._clock = clock
        self._trouble = trouble
        self._lay_aside = lay_aside
        self._kept: list[AbstractIncomingMessage] = []
        self._due = asyncio.Event()
        self._lost: dict[str, int] = {}  # by gateway
        self.acknowledged = 0

    @property
    def is_up(self) -> bool:
        """Whether the broker can be reached."""
        return self._link.is_up

    async def run(
        self, sink: EventSink, durable: Callable[[], Awaitable[bool]], ears: Ears
    ) -> NoReturn:
        """Hand on events, and what other workers tell and ask, for ever; `durable` waits until all
        that came of events is written, False where that cannot be promised. Raises ConfigError for
        a broker of another cluster.
        """

        async def session(connection: AbstractConnection) -> None:
            try:
                await self._session(connection, sink, durable, ears)
            finally:
                # Whoever is there comes anew: what waits for an account is sent when it comes.
                self._where.forget_all()
                self._calls.hang_up()
                self._asks.hang_up()

        await self._link.keep(session)

    async def _session(
        self,
        connection: AbstractConnection,
        sink: EventSink,
        durable: Callable[[], Awaitable[bool]],
        ears: Ears,
    ) -> None:
        events, calls = await connection.channel(), await connection.channel(on_return_raises=True)
        await events.set_qos(prefetch_count=PREFETCH)
        topology = await declare(connection, events, self._share.partitions)
        await self._calls.begin(calls)
        presence = await calls.declare_queue(exclusive=True, auto_delete=True)
        await presence.bind(topology.presence)
        notes = await calls.declare_queue(exclusive=True, auto_delete=True)
        await notes.bind(topology.notes)
        came: asyncio.Queue[AbstractIncomingMessage | Connected | Note | None] = asyncio.Queue()

        async def attend(message: AbstractIncomingMessage) -> None:
            for account in self._hear(message):
                came.put_nowait(Connected(self_id=account, time=self._clock.now()))

        async def listen(message: AbstractIncomingMessage) -> None:
            if (note := self._notices.read(message)) is not None:
                came.put_nowait(note)

        await notes.consume(listen, no_ack=True)
        came.put_nowait(None)  # whatever was told before
        await presence.consume(attend, no_ack=True)
        self._kept.clear()
        self._due.clear()
        async with asyncio.TaskGroup() as group:
            group.create_task(watch(events))
            group.create_task(watch(calls))
            group.create_task(self._acknowledge(durable))
            group.create_task(self._notices.pass_on(topology.notes))
            await self._asks.begin(calls, group, ears.answer)
            await topology.partitions[self._share.partition].consume(came.put)
            self._link.is_up = True
            while True:
                match await came.get():
                    case Connected() as event:
                        await sink.handle(event)
                    case None | Taken() | RowSet() | PlaceTold() | Forgotten() as note:
                        await ears.hear(note)
                    case Alarmed() as note:
                        await ears.hear(note if self._is_crier else replace(note, text=""))
                    case message:
                        await self._take(message, sink)

    # --- events -----------------------------------------------------------------------------------

    async def _take(self, message: AbstractIncomingMessage, sink: EventSink) -> None:
        try:
            event: Event = unpack(Event, message.body, message.headers.get(HEADER_VERSION))
        except codec.Unreadable as error:
            logger.exception("an event cannot be read, and is kept in %s", DEAD)
            self._lay_aside()
            self._trouble(filled(UNREADABLE, why=str(error)[:200], queue=DEAD))
            await message.reject(requeue=False)
            return
        try:
            await sink.handle(self._as_it_came(event, message))
        except Exception:  # a bug of ours: nobody else's event may wait for it
            logger.exception("an event was not handled")
            await self._give_back(message)
        else:
            self._kept.append(message)
            self._due.set()

    def _as_it_came(self, event: Event, message: AbstractIncomingMessage) -> Event:
        """A message that waited long says so."""
        taken = message.headers.get(HEADER_TAKEN)
        if not isinstance(event, MessageReceived) or not isinstance(taken, int):
            return event
        seconds = self._where.waited(str(message.headers.get(HEADER_GATEWAY)), taken / 1000)
        if seconds < LONG:
            return event
        return MessageWaited(self_id=event.self_id, time=event.time, message=event, seconds=seconds)

    async def _give_back(self, message: AbstractIncomingMessage) -> None:
        """Once more, or never."""
        tries = int(str(message.headers.get(COUNTED) or 0)) + 1
        if tries >= TRIES:
            self._lay_aside()
            self._trouble(filled(UNHANDLED, times=TRIES, queue=DEAD))
        await message.reject(requeue=tries < TRIES)

    async def _acknowledge(self, durable: Callable[[], Awaitable[bool]]) -> NoReturn:
        while True:
            await self._due.wait()
            await self._clock.sleep(GATHERED)
            self._due.clear()
            handled, self._kept = self._kept, []
            while not await durable():
                await self._clock.sleep(AGAIN)
            # Whatever came before the last of them is handled, or was given back.
            await handled[-1].ack(multiple=True)
            self.acknowledged += len(handled)

    # --- accounts ---------------------------------------------------------------------------------

    def _hear(self, message: AbstractIncomingMessage) -> tuple[int, ...]:
        try:
            version = message.headers.get(HEADER_VERSION)
            told = unpack(Presence, message.body, version)
        except codec.Unreadable:
            logger.exception("what a gateway says of its accounts cannot be read")
            return ()
        if self._share.is_first:
            self._look_at_losses(told)
        came = self._where.hear(told)
        self._notices.has_crier = self._where.crier is not None
        return came

    @property
    def _is_crier(self) -> bool:
        return self._where.crier == self._share.partition

    def _look_at_losses(self, told: Presence) -> None:
        """Of all workers one tells what gateways have lost."""
        before = self._lost.get(told.gateway)
        is_news = told.now - told.lost_at < LATELY if before is None else told.lost > before
        there = {name: lost for name, lost in self._lost.items() if self._where.has(name)}
        self._lost = there | {told.gateway: told.lost}
        if told.lost and is_news:
            self._trouble(filled(LOST, lost=told.lost))
