"""The events of a gateway on their way to the partitions."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections import Counter, deque
from typing import Final, NoReturn, TypeAlias

from aio_pika.abc import AbstractChannel
from aio_pika.exceptions import DeliveryError, PublishError

from adapters.broker.link import BrokerLink
from adapters.broker.payloads import HEADER_GATEWAY, HEADER_TAKEN, HEADER_VERSION, VERSION, pack
from adapters.broker.topology import EVENTS, queue_of
from adapters.broker.wire import PERSISTENT, properties, publish
from bot.domain.events import Conversation, Event, MessageReceived
from bot.domain.notes import partition_of
from bot.domain.ports import Clock
from bot.domain.segments import Mention

BACKLOG: Final = 20_000  # events that wait here for a broker that is away
BATCH: Final = 100  # events on their way at once, which what is told of accounts has to wait for
TRIES: Final = 6  # to get into a partition that refuses: its queue may be without a leader just now
PAUSE: Final = 1.0  # seconds between two of them
TOLD: Final = 20  # chats whose people are shown at a time that something was lost
LONGEST: Final = 2000  # bytes of a message that is told of as lost

logger = logging.getLogger(__name__)

Waiting: TypeAlias = tuple[Event, float]  # and when it came


class Outflow:
    """Publishes events, those of a partition in order; one that refuses them holds up no other.
    `name` is the gateway's.
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

    def add(self, event: Event) -> None:
        """Publish it, once there is a broker; one that finds 20,000 waiting is lost."""
        if self.waiting >= BACKLOG:
            self.lose("the broker takes none")
            return
        partition = partition_of(event.self_id, len(self._lines))
        self._lines[partition].append((event, self._clock.now()))
        self.waiting += 1
        self._empty.clear()
        self._due[partition].set()

    def lose(self, why: str) -> None:
        """Count one that nobody will get."""
        self.lost, self.lost_at = self.lost + 1, self._clock.now()
        if self.lost == 1 or self.lost % 1000 == 0:
            logger.error("%d events are lost: %s", self.lost, why)

    async def wait_empty(self) -> None:
        """Return once nothing waits."""
        await self._empty.wait()

    def begin(self, group: asyncio.TaskGroup, channel: AbstractChannel) -> None:
        """Publish what waits, in tasks of the group, which end with Lost or aio-pika's errors. What
        was not confirmed then is published again: workers know an event that comes twice.
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
                self._lose_left(partition)
            elif refused:
                await self._clock.sleep(PAUSE)

    def _lose_left(self, partition: int) -> None:
        number = self._left.pop(partition)
        for _ in range(number):
            event, _ = self._lines[partition].popleft()
            self.lose("their partition is full, as no worker takes them in time")
            if isinstance(event, MessageReceived) and _is_asked(event) and len(self._asked) < TOLD:
                self._asked.setdefault(event.conversation, event)
        self._are_settled(number)

    def take_asked(self) -> tuple[MessageReceived, ...]:
        """Of what was lost since this was asked, some messages to an account: one of a chat."""
        asked, self._asked = tuple(self._asked.values()), {}
        return asked

    async def _publish_some(self, channel: AbstractChannel, partition: int) -> int:
        """How many of the first were refused: these are the first now."""
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
