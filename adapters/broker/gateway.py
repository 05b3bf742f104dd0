"""The gateways' side: events out, calls in, and which accounts are here."""

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

BACKLOG: Final = 20_000  # events that wait here for a broker that is away
BATCH: Final = 100  # events on their way at once, which what is told of accounts has to wait for
TRIES: Final = 6  # to get into a partition that refuses: its queue may be without a leader just now
PAUSE: Final = 1.0  # seconds between two of them
TOLD: Final = 20  # chats whose people are shown at a time that something was lost
LONGEST: Final = 2000  # bytes of a message that is told of as lost

logger = logging.getLogger(__name__)

Waiting: TypeAlias = tuple[Event, float]  # and when it came


class EventPublisher:
    """Publishes events, in order within each partition; a partition that refuses them delays no
    other. `name` is the gateway's.
    """

    def __init__(self, name: str, *, link: BrokerLink, partitions: int, clock: Clock) -> None:
        self._name = name
        self._link = link
        self._clock = clock
        self._lines = tuple(deque[Waiting]() for _ in range(partitions))
        self._due = tuple(asyncio.Event() for _ in range(partitions))
        self._refusals: Counter[int] = Counter()  # by partition, one after the other
        self._left: Counter[int] = Counter()  # by partition: of the first, so many went in vain
        self._under_way = 0  # to all partitions
        self._numbers = itertools.count(1)
        self._empty = asyncio.Event()
        self._empty.set()
        self._asked: dict[Conversation, MessageReceived] = {}  # of what was lost
        self.waiting = self.published = self.lost = 0
        self.lost_at = 0.0

    def enqueue(self, event: Event) -> None:
        """Queue an event for publishing; it is lost if 20,000 wait already."""
        if self.waiting >= BACKLOG:
            self.count_lost("the broker takes none")
            return
        partition = partition_of(event.self_id, len(self._lines))
        self._lines[partition].append((event, self._clock.now()))
        self.waiting += 1
        self._empty.clear()
        self._due[partition].set()

    def count_lost(self, why: str) -> None:
        """Count and log one lost event."""
        self.lost, self.lost_at = self.lost + 1, self._clock.now()
        if self.lost == 1 or self.lost % 1000 == 0:
            logger.error("%d events are lost: %s", self.lost, why)

    async def wait_empty(self) -> None:
        """Wait until no event is queued."""
        await self._empty.wait()

    def start(self, group: asyncio.TaskGroup, channel: AbstractChannel) -> None:
        """Publish queued events in tasks of the group, which end with ConnectionLost or aio-pika's
        errors. Unconfirmed events are published again on the next connection: workers recognise
        duplicates.
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
        """Messages to the bot among the events lost since the last call: at most one a chat."""
        asked, self._asked = tuple(self._asked.values()), {}
        return asked

    async def _publish_some(self, channel: AbstractChannel, partition: int) -> int:
        """Publish a batch. Returns how many were refused; they stay at the front."""
        line = self._lines[partition]
        batch = list(itertools.islice(line, self._room(partition)))
        are_in = [False] * len(batch)  # by what the broker has confirmed

        async def publish_one(place: int) -> None:
            are_in[place] = await self._publish(channel, partition, *batch[place])

        self._under_way += len(batch)
        try:
            with self._link.in_time():
                if len(batch) == 1:  # nearly always
                    await publish_one(0)
                else:
                    async with asyncio.TaskGroup() as group:
                        for place in range(len(batch)):
                            group.create_task(publish_one(place))
        finally:  # also where the broker goes: what it has confirmed is not to come twice
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
        """How many events may be on their way to a partition: its share. It is one at least, as a
        partition that is slow to confirm is to hold up no other; and one where some went in vain,
        as others would overtake them.
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
        """Whether it has a place in its partition."""
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
        except PublishError:  # nobody has such a queue
            raise
        except DeliveryError:  # x-overflow, or a queue in trouble
            return False
        return True


def _is_asked(event: MessageReceived) -> bool:
    """Whether it is to the account beyond doubt: wake rules are the workers' affair."""
    named = {one.user_id for one in event.segments if isinstance(one, Mention)}
    is_to_us = event.self_id in named or not event.conversation.is_group
    return is_to_us and len(pack(event)) <= LONGEST


# Seconds, also where nothing changed: a worker that takes over can call nobody before it has heard.
PRESENCE_EVERY: Final = 0.5
LOOK: Final = 0.2  # seconds between two looks at the accounts


class Gateway:
    """An `EventSink` that publishes, in order, and a desk that answers calls.

    `calls` puts a call to an account's server, and raises nothing; `accounts` says who is here.
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
        """Events that the broker has not confirmed yet."""
        return self._publisher.waiting

    @property
    def published(self) -> int:
        """Events that the broker has confirmed."""
        return self._publisher.published

    @property
    def lost(self) -> int:
        """Events that nobody will get."""
        return self._publisher.lost

    @property
    def is_up(self) -> bool:
        """Whether the broker takes what comes."""
        return self._link.is_up

    async def handle(self, event: Event) -> None:
        """Take an event; one that finds 20,000 waiting is lost, and so is one that its partition
        refuses for some seconds: that is said.
        """
        if isinstance(event, Heartbeat):  # part of what is told of the account
            return
        if isinstance(event, Connected):  # so is this, also to workers that come later
            self._times[event.self_id] += 1
            return
        self._publisher.enqueue(event)

    async def wait_published(self) -> None:
        """Return once the broker has confirmed all that came."""
        await self._publisher.wait_empty()

    async def run(self) -> NoReturn:
        """Work for ever. Raises ConfigError for a broker of another cluster."""
        await self._link.keep(self._session)

    async def _session(self, connection: AbstractConnection) -> None:
        out = await connection.channel(on_return_raises=True)
        back = await connection.channel(publisher_confirms=False)  # who asked has a deadline
        topology = await declare(connection, out, self._partitions)
        desk = await back.declare_queue(self._name, exclusive=True, auto_delete=True)
        # Each call in a task of the library's, which ends it with the channel: also one that comes
        # after the session's end, and is told as unanswered.
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
        except Exception as error:  # nobody else's calls may end with it
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
            # Whoever took over has settled what this worker still believes to be its own.
            self.refused += 1
            logger.error("%s of an ousted worker is refused", call.action)
            return CallEnd("not_connected", wording="another worker has taken over")
        self._epochs[partition] = call.epoch
        return await self._calls(call)
