"""The gateway's side: publishes events, carries out calls, announces its accounts."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections import Counter, deque
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final, NoReturn, TypeAlias

from aio_pika import DeliveryMode, Message
from aio_pika.abc import AbstractChannel, AbstractConnection
from aio_pika.exceptions import DeliveryError, PublishError
from msgspec.structs import replace

from adapters.broker.link import BrokerLink, watch
from adapters.broker.partitions import partition_of
from adapters.broker.payloads import (
    HEADER_GATEWAY,
    HEADER_TAKEN,
    HEADER_VERSION,
    LARGEST,
    VERSION,
    CallEnd,
    GatewayCall,
    Presence,
    pack,
    unpack,
)
from adapters.broker.topology import EVENTS, Topology, declare, queue_of
from adapters.broker.wire import PERSISTENT, Delivered, consume, headers_of, properties, publish
from bot.core import codec
from bot.core.conversation import Conversation
from bot.core.events import Connected, Event, Heartbeat, MessageReceived
from bot.core.segments import Mention
from frostagent.types.ports import Clock

BACKLOG: Final = 20_000  # queued events while the broker is away
BATCH: Final = 100  # unconfirmed events; later announcements wait for them
TRIES: Final = 6  # attempts to publish to a refusing partition, whose queue may be without a leader
PAUSE: Final = 1.0  # seconds between two attempts
TOLD: Final = 20  # chats notified of a loss at a time
LONGEST: Final = 2000  # bytes of a lost message that is announced

logger = logging.getLogger(__name__)

Waiting: TypeAlias = tuple[Event, float]  # an event, and when it came


class EventPublisher:
    """Publishes events, in order within each partition. A partition that refuses them delays no
    other. `name` is the gateway's.
    """

    def __init__(self, name: str, *, link: BrokerLink, partitions: int, clock: Clock) -> None:
        self._name = name
        self._link = link
        self._clock = clock
        self._lines = tuple(deque[Waiting]() for _ in range(partitions))
        self._due = tuple(asyncio.Event() for _ in range(partitions))
        self._refusals: Counter[int] = Counter()  # by partition, consecutive
        self._left: Counter[int] = Counter()  # by partition: refused events at the front
        self._under_way = 0  # over all partitions
        self._numbers = itertools.count(1)
        self._empty = asyncio.Event()
        self._empty.set()
        self._asked: dict[Conversation, MessageReceived] = {}  # lost ones
        self.waiting = self.published = self.lost = 0
        self.lost_at = 0.0

    def enqueue(self, event: Event) -> None:
        """Queue an event for publishing; if 20,000 are queued, it is lost."""
        if self.waiting >= BACKLOG:
            self.count_lost("the broker takes none")
            return
        partition = partition_of(event.self_id, len(self._lines))
        self._lines[partition].append((event, self._clock.now()))
        self.waiting += 1
        self._empty.clear()
        self._due[partition].set()

    def count_lost(self, why: str) -> None:
        self.lost, self.lost_at = self.lost + 1, self._clock.now()
        if self.lost == 1 or self.lost % 1000 == 0:
            logger.error("%d events are lost: %s", self.lost, why)

    async def wait_empty(self) -> None:
        await self._empty.wait()

    def start(self, group: asyncio.TaskGroup, channel: AbstractChannel) -> None:
        """Publish queued events in tasks of the group, which end with ConnectionLost or aio-pika's
        errors. Unconfirmed events are published again on the next connection; workers deduplicate.
        """
        for partition in range(len(self._lines)):
            group.create_task(self._publish_all(channel, partition))

    async def _publish_all(self, channel: AbstractChannel, partition: int) -> NoReturn:
        line, due = self._lines[partition], self._due[partition]
        while True:
            while not line:
                due.clear()
                await due.wait()
            refused = await self._publish_some(channel, partition)
            self._refusals[partition] = self._refusals[partition] + 1 if refused else 0
            if self._refusals[partition] >= TRIES:
                self._give_up_refused(partition)
            elif refused:
                await self._clock.sleep(PAUSE)

    def _give_up_refused(self, partition: int) -> None:
        number = self._left.pop(partition)
        for _ in range(number):
            event, _ = self._lines[partition].popleft()
            self.count_lost("their partition is full, as no worker takes them in time")
            if isinstance(event, MessageReceived) and _is_asked(event) and len(self._asked) < TOLD:
                self._asked.setdefault(event.conversation, event)
        self._are_settled(number)

    def pop_lost_requests(self) -> tuple[MessageReceived, ...]:
        """The messages to the bot among newly lost events, at most one per chat."""
        asked, self._asked = tuple(self._asked.values()), {}
        return asked

    async def _publish_some(self, channel: AbstractChannel, partition: int) -> int:
        """Publish a batch. Returns how many were refused; they stay at the front of the queue."""
        line = self._lines[partition]
        batch = list(itertools.islice(line, self._room(partition)))
        are_in = [False] * len(batch)  # confirmed by the broker

        async def publish_one(place: int) -> None:
            are_in[place] = await self._publish(channel, partition, *batch[place])

        self._under_way += len(batch)
        try:
            with self._link.in_time():
                if len(batch) == 1:  # the usual case
                    await publish_one(0)
                else:
                    async with asyncio.TaskGroup() as group:
                        for place in range(len(batch)):
                            group.create_task(publish_one(place))
        finally:  # even if the connection is lost: confirmed events must not be sent again
            self._under_way -= len(batch)
            for _ in batch:
                line.popleft()
            left = [one for one, is_in in zip(batch, are_in, strict=True) if not is_in]
            line.extendleft(reversed(left))
            confirmed = len(batch) - len(left)
            self._left[partition] = max(self._left[partition] - confirmed, len(left))
            self.published += confirmed
            self._are_settled(confirmed)
        return len(left)

    def _room(self, partition: int) -> int:
        """The number of unconfirmed events allowed for a partition: its share, but at least one, so
        that a slow partition delays no other; and one after a refusal, because others would
        overtake the refused ones.
        """
        if self._left[partition]:
            return 1
        share = BATCH // sum(map(bool, self._lines))
        return max(1, min(share, BATCH - self._under_way))

    def _are_settled(self, number: int) -> None:
        self.waiting -= number
        if not self.waiting:
            self._empty.set()

    async def _publish(
        self, channel: AbstractChannel, partition: int, event: Event, taken: float
    ) -> bool:
        """Publish an event. Returns False if the partition refuses it."""
        given = properties(
            {
                HEADER_VERSION: VERSION,
                HEADER_GATEWAY: self._name,
                HEADER_TAKEN: round(taken * 1000),
            },
            message_id=str(next(self._numbers)),
            delivery_mode=PERSISTENT,
        )
        try:
            await publish(channel, pack(event), queue_of(partition), given, exchange=EVENTS)
        except PublishError:  # there is no such queue
            raise
        except DeliveryError:  # x-overflow, or a queue in trouble
            return False
        return True


def _is_asked(event: MessageReceived) -> bool:
    """Whether it is certainly addressed to the account; the wake rules are applied by workers."""
    named = {one.user_id for one in event.segments if isinstance(one, Mention)}
    is_to_us = event.self_id in named or not event.conversation.is_group
    return is_to_us and len(pack(event)) <= LONGEST


# Seconds, even without changes: a worker that takes over can make no calls before the first
# announcement.
PRESENCE_EVERY: Final = 0.5
LOOK: Final = 0.2  # seconds between two checks of the accounts


class Gateway:
    """An `EventSink` that publishes events in order, and a server for calls.

    `calls` carries out a call and raises nothing; `accounts` returns the present accounts.
    """

    def __init__(
        self,
        name: str,
        *,
        link: BrokerLink,
        partitions: int,
        calls: Callable[[GatewayCall], Awaitable[CallEnd]],
        accounts: Callable[[], Presence],
        clock: Clock,
    ) -> None:
        self._name = name
        self._link = link
        self._publisher = EventPublisher(name, link=link, partitions=partitions, clock=clock)
        self._partitions = partitions
        self._calls = calls
        self._accounts = accounts
        self._clock = clock
        self._epochs: Counter[int] = Counter()
        self._times: Counter[int] = Counter()
        self.refused = 0

    @property
    def waiting(self) -> int:
        """Events not confirmed by the broker yet."""
        return self._publisher.waiting

    @property
    def published(self) -> int:
        """Events confirmed by the broker."""
        return self._publisher.published

    @property
    def lost(self) -> int:
        return self._publisher.lost

    @property
    def is_up(self) -> bool:
        """Whether the broker accepts messages."""
        return self._link.is_up

    async def handle(self, event: Event) -> None:
        """Publish an event. It is lost, and reported, if 20,000 are queued or its partition refuses
        it for some seconds.
        """
        if isinstance(event, Heartbeat):  # announced with the account
            return
        if isinstance(event, Connected):  # likewise, also to later workers
            self._times[event.self_id] += 1
            return
        self._publisher.enqueue(event)

    async def wait_published(self) -> None:
        """Return once the broker has confirmed all events."""
        await self._publisher.wait_empty()

    async def run(self) -> NoReturn:
        """Run for ever. Raises ConfigError for a broker of another cluster."""
        await self._link.keep(self._session)

    async def _session(self, connection: AbstractConnection) -> None:
        out = await connection.channel(on_return_raises=True)
        back = await connection.channel(publisher_confirms=False)  # the caller has a deadline
        topology = await declare(connection, out, self._partitions)
        desk = await back.declare_queue(self._name, exclusive=True, auto_delete=True)
        # The library runs each call in a task that ends with the channel: a call that arrives after
        # the session is reported as unanswered.
        await consume(back, desk.name, partial(self._answer, back), no_ack=True)
        async with asyncio.TaskGroup() as group:
            group.create_task(watch(back))
            group.create_task(self._tell_accounts(topology))
            self._link.is_up = True
            self._publisher.start(group, out)
            await watch(out)

    # --- accounts ---------------------------------------------------------------------------------

    async def _tell_accounts(self, topology: Topology) -> NoReturn:
        told, due = None, 0.0
        while True:
            now = self._clock.monotonic()
            here = self._here()
            if here.accounts != told or now >= due:
                message = Message(
                    pack(replace(here, asked=self._publisher.pop_lost_requests())),
                    headers={HEADER_VERSION: VERSION},
                    content_type="application/json",
                    delivery_mode=DeliveryMode.NOT_PERSISTENT,
                )
                with self._link.in_time():
                    await topology.presence.publish(message, "", mandatory=False)
                told, due = here.accounts, now + PRESENCE_EVERY
            await self._clock.sleep(LOOK)

    def _here(self) -> Presence:
        here = self._accounts()
        counted = tuple(replace(one, times=self._times[one.self_id]) for one in here.accounts)
        return replace(
            here,
            gateway=self._name,
            accounts=counted,
            waiting=self.waiting,
            lost=self.lost,
            lost_at=self._publisher.lost_at,
            now=self._clock.now(),
            ticks=self._clock.monotonic(),
        )

    # --- calls ------------------------------------------------------------------------------------

    async def _answer(self, channel: AbstractChannel, message: Delivered) -> None:
        try:
            body = pack(await self._done(message))
            if len(body) > LARGEST:
                why = f"its answer has {len(body) / 2**20:.1f} MB, over 8: too large for a cluster"
                body = pack(CallEnd("unanswered", wording=why))
        except Exception as error:  # other calls must not end with it
            logger.exception("what became of a call cannot be told")
            body = pack(CallEnd("unanswered", wording=type(error).__name__))
        asked = message.header.properties
        if asked.reply_to:
            number = asked.correlation_id or ""
            given = properties({HEADER_VERSION: VERSION}, message_id=number, correlation_id=number)
            await publish(channel, body, asked.reply_to, given, mandatory=False)

    async def _done(self, message: Delivered) -> CallEnd:
        try:
            version = headers_of(message).get(HEADER_VERSION)
            call: GatewayCall = unpack(GatewayCall, message.body, version)
        except codec.Unreadable as error:
            logger.exception("a call cannot be read")
            return CallEnd("not_connected", wording=str(error))
        if call.until and self._clock.monotonic() > call.until:
            logger.warning("%s comes too late: whoever asked for it waits no more", call.action)
            return CallEnd("not_connected", wording="it came too late")
        partition = partition_of(call.account, self._partitions)
        if call.epoch < self._epochs[partition]:
            # The new owner has already settled the old worker's open work.
            self.refused += 1
            logger.error("%s of an ousted worker is refused", call.action)
            return CallEnd("not_connected", wording="another worker has taken over")
        self._epochs[partition] = call.epoch
        return await self._calls(call)
