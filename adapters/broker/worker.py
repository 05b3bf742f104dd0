"""The worker's side of the broker: receives events, makes calls, exchanges announcements and
queries with other bots.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from typing import Final, NoReturn, TypeAlias

from aio_pika.abc import AbstractConnection, AbstractIncomingMessage

from adapters.broker.account_locations import AccountLocations
from adapters.broker.calls import GatewayCalls
from adapters.broker.link import BrokerLink, watch
from adapters.broker.notes import NoteExchange
from adapters.broker.partition_consumer import PartitionConsumer
from adapters.broker.payloads import HEADER_GATEWAY, HEADER_VERSION, Presence, unpack
from adapters.broker.queries import ClusterHandlers
from adapters.broker.requests import RequestExchange
from adapters.broker.topology import declare
from adapters.broker.wire import Delivered, headers_of
from bot.core import codec
from bot.core.erasure import SubjectErased
from bot.core.events import Connected, MessageLost
from bot.core.language import CATALOGUE, NotifyOwners, Phrase
from bot.core.other_bots import (
    AlarmRaised,
    Announcement,
    PlaceChanged,
    RowChanged,
    UsageTaken,
)
from bot.core.ports import EventSink
from frostagent.types.ports import Clock

INTRODUCED_WITHIN: Final = 1.5  # seconds in which every gateway announces itself, older ones too

Come: TypeAlias = Delivered | Connected | MessageLost | Announcement | None


class Inbox:
    """What came over the broker, in the order in which the bot handles it.

    For a while after connecting, an event waits until its gateway has announced its accounts:
    `Connected` must precede the account's events, and an event's age depends on its gateway's
    clock. An alarm waits for all gateways, because only one bot reports it.
    """

    def __init__(self, where: AccountLocations, clock: Clock) -> None:
        self._where = where
        self._clock = clock
        self._come: asyncio.Queue[Come] = asyncio.Queue()
        self._held: deque[Delivered] = deque()
        self._alarms: list[AlarmRaised] = []
        self._is_open = False

    def put(self, *come: Connected | MessageLost | Announcement | None) -> None:
        """Add anything but events."""
        for one in come:
            if isinstance(one, AlarmRaised) and not self._is_open:
                self._alarms.append(one)
            else:
                self._come.put_nowait(one)

    async def add_event(self, event: Delivered) -> None:
        """Add an event, after those waiting."""
        self._held.append(event)
        self.release_known()

    def release_known(self) -> None:
        """Release the first waiting events whose gateways are known."""
        while self._held and (self._is_open or self._is_known(self._held[0])):
            self._come.put_nowait(self._held.popleft())

    async def open(self) -> None:
        """Release everything, after a while."""
        await self._clock.sleep(INTRODUCED_WITHIN)
        self._is_open = True
        self.put(*self._alarms)
        self.release_known()

    async def next(self) -> Come:
        return await self._come.get()

    def _is_known(self, event: Delivered) -> bool:
        return self._where.is_present(str(headers_of(event).get(HEADER_GATEWAY)))


LATELY: Final = 600.0  # seconds after a loss in which a new worker still reports it

LOST: Final = Phrase(
    "网关丢了事件 (至今 {lost} 个)：RabbitMQ 收不下，或者它们的分区满了。"
    "请看看 RabbitMQ 和 worker 是否都在运行；worker 和分区多一些，收得就多一些。",
    "A gateway has lost events ({lost} so far): the broker took no more of them, or their"
    " partition was full. See that RabbitMQ and the workers run; more workers and partitions"
    " take more.",
)
CATALOGUE.register(__name__, globals())
logger = logging.getLogger(__name__)


class Worker:
    """Connects one bot to the broker. `trouble` reports events that gateways have lost."""

    def __init__(
        self,
        *,
        link: BrokerLink,
        where: AccountLocations,
        consumer: PartitionConsumer,
        calls: GatewayCalls,
        notices: NoteExchange,
        asks: RequestExchange,
        clock: Clock,
        trouble: NotifyOwners,
    ) -> None:
        self._link = link
        self._share = where.share
        self._where = where
        self._consumer = consumer
        self._calls = calls
        self._notices = notices
        self._asks = asks
        self._clock = clock
        self._trouble = trouble
        self._lost: dict[str, int] = {}  # by gateway

    @property
    def is_up(self) -> bool:
        return self._link.is_up

    async def run(
        self, sink: EventSink, durable: Callable[[], Awaitable[bool]], ears: ClusterHandlers
    ) -> NoReturn:
        """Pass events to `sink`, and other bots' announcements and queries to `ears`, for ever.
        `durable` waits until the results of all events are written, and returns False if that
        cannot be promised. Raises ConfigError for a broker with another number of partitions.
        """

        async def session(connection: AbstractConnection) -> None:
            try:
                await self._session(connection, sink, durable, ears, answers)
            finally:
                # All accounts will connect again, which releases sends that wait for one.
                self._where.forget_all()
                self._calls.disconnect()
                self._asks.disconnect()

        # a query being answered does not end with its connection
        async with asyncio.TaskGroup() as answers:
            await self._link.keep(session)

    async def _session(
        self,
        connection: AbstractConnection,
        sink: EventSink,
        durable: Callable[[], Awaitable[bool]],
        ears: ClusterHandlers,
        answers: asyncio.TaskGroup,
    ) -> None:
        out, calls = await connection.channel(), await connection.channel(on_return_raises=True)
        topology = await declare(connection, out, self._share.partitions)
        await self._calls.connect(calls)
        presence = await calls.declare_queue(exclusive=True, auto_delete=True)
        await presence.bind(topology.presence)
        notes = await calls.declare_queue(exclusive=True, auto_delete=True)
        await notes.bind(topology.notes)
        inbox = Inbox(self._where, self._clock)

        async def attend(message: AbstractIncomingMessage) -> None:
            if (told := self._read(message)) is not None:
                inbox.put(*self._take_in_presence(told))
            inbox.release_known()

        async def listen(message: AbstractIncomingMessage) -> None:
            if (note := self._notices.read(message)) is not None:
                inbox.put(note)

        await notes.consume(listen, no_ack=True)
        inbox.put(None)  # earlier announcements were missed
        await presence.consume(attend, no_ack=True)
        async with asyncio.TaskGroup() as group:
            group.create_task(watch(out))
            group.create_task(watch(calls))
            group.create_task(self._calls.watch(self._clock))
            group.create_task(self._notices.pass_on(topology.notes, self._link))
            group.create_task(self._notices.insist(self._clock))
            await self._asks.connect(calls, answers, ears.answer)
            group.create_task(inbox.open())
            group.create_task(self._announce_again(inbox))
            group.create_task(self._consume(connection, inbox, durable, ears))
            self._link.is_up = True
            while True:
                match await inbox.next():
                    case Connected() | MessageLost() as event:
                        await sink.handle(event)
                    case (
                        None
                        | UsageTaken()
                        | RowChanged()
                        | PlaceChanged()
                        | SubjectErased() as note
                    ):
                        await ears.hear(note)
                    case AlarmRaised() as note:
                        if not note.text or self._where.announcing_partition in (
                            None,
                            self._share.partition,
                        ):
                            await ears.hear(note)
                    case message:
                        await self._consumer.process(message, sink, ears)

    async def _consume(
        self,
        connection: AbstractConnection,
        inbox: Inbox,
        durable: Callable[[], Awaitable[bool]],
        ears: ClusterHandlers,
    ) -> NoReturn:
        """Consume only after recovery: a worker that dies during recovery has received no event."""
        await ears.at_work()
        await self._consumer.run(connection, inbox.add_event, durable)

    # --- accounts ---------------------------------------------------------------------------------

    async def _announce_again(self, inbox: Inbox) -> NoReturn:
        """After a resource alarm of the broker, report all accounts as connected again, which
        releases failed sends.
        """
        while True:
            await self._link.alarm_over.wait()
            self._link.alarm_over.clear()
            now = self._clock.now()
            there = self._where.accounts()
            inbox.put(*(Connected(self_id=one.self_id, time=now) for one in there))

    def _read(self, message: AbstractIncomingMessage) -> Presence | None:
        try:
            told: Presence = unpack(Presence, message.body, message.headers.get(HEADER_VERSION))
        except codec.Unreadable:
            logger.exception("what a gateway says of its accounts cannot be read")
            return None
        return told

    def _take_in_presence(self, told: Presence) -> Iterator[Connected | MessageLost]:
        """Store a gateway's announcement, and yield the events that follow from it."""
        now = self._clock.now()
        if self._share.is_first:
            self._look_at_losses(told)
        came = self._where.update(told)
        self._notices.can_alarm = self._where.announcing_partition is not None
        yield from (Connected(self_id=account, time=now) for account in came)
        for one in told.asked:
            if self._share.has(one.self_id):
                yield MessageLost(self_id=one.self_id, time=now, message=one)

    def _look_at_losses(self, told: Presence) -> None:
        """Report events lost by gateways; only the first partition's worker does."""
        before = self._lost.get(told.gateway)
        is_news = told.now - told.lost_at < LATELY if before is None else told.lost > before
        there = {name: lost for name, lost in self._lost.items() if self._where.is_present(name)}
        self._lost = there | {told.gateway: told.lost}
        if told.lost and is_news:
            self._trouble(LOST.fill(lost=told.lost))
