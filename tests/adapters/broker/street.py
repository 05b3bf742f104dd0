"""A gateway and a worker over a real broker, and a ledger of what reached whom."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aio_pika.abc import AbstractIncomingMessage, AbstractQueue

from adapters.broker import link
from adapters.broker.account_locations import AccountLocations
from adapters.broker.calls import GatewayCalls
from adapters.broker.gateway import Gateway
from adapters.broker.link import BrokerLink
from adapters.broker.notes import NoteExchange
from adapters.broker.partition_consumer import PartitionConsumer
from adapters.broker.partitions import ClusterPartition, partition_of
from adapters.broker.payloads import AccountPresence, CallEnd, GatewayCall, Presence
from adapters.broker.queries import ClusterHandlers, ClusterQuery, ClusterReply
from adapters.broker.requests import RequestExchange
from adapters.broker.topology import queue_of
from adapters.broker.worker import Worker
from bot.core.conversation import Conversation
from bot.core.events import Connected, Event, MessageReceived, MessageWaited, Sender
from bot.core.other_bots import Announcement, RowChanged
from frostagent.clock import RandomIds, SystemClock
from frostagent.types.ports import Clock
from frostagent.types.speech import Text
from tests.adapters.broker.conftest import PARTITIONS
from tests.fakes import until
from tests.owners import read

ACCOUNT = 10001
PATIENCE = 20.0  # seconds
SHARE = ClusterPartition(partition_of(ACCOUNT, PARTITIONS), PARTITIONS)
OURS = queue_of(SHARE.partition)


def said(number: int, group: int = 4242) -> MessageReceived:
    return MessageReceived(
        self_id=ACCOUNT,
        time=1.0,
        conversation=Conversation(ACCOUNT, "group", group),
        message_id=str(number),
        sender=Sender(20001, "小明"),
        segments=(Text(f"第{number}句"),),
    )


async def next_in(queue: AbstractQueue) -> AbstractIncomingMessage:
    """What comes into the queue next: what is set aside gets there when the broker comes to it."""
    async with asyncio.timeout(PATIENCE):
        while (message := await queue.get(fail=False)) is None:
            pass
    return message


@dataclass
class Sockets:
    """The other end of a gateway: answers calls as it is told, and keeps them."""

    here: Presence = field(default_factory=lambda: Presence("", (AccountPresence(ACCOUNT, True, "NapCat"),)))
    calls: list[GatewayCall] = field(default_factory=list)
    answer: CallEnd = field(default_factory=lambda: CallEnd("answered", True, 0, {"message_id": 7}))
    hold: asyncio.Event | None = None

    async def put(self, call: GatewayCall) -> CallEnd:
        self.calls.append(call)
        if self.hold is not None:
            await self.hold.wait()
        return self.answer


@dataclass
class Desk:
    """What a worker's events come to; `is_durable` is what its journal promises."""

    events: list[Event] = field(default_factory=list)
    is_durable: bool = True
    notes: list[Announcement | None] = field(default_factory=list)
    promises: int = 0
    breaks_at: str = ""
    asked: list[ClusterQuery] = field(default_factory=list)
    says: ClusterReply | None = None
    recovers: bool = False  # for ever

    async def at_work(self) -> None:
        if self.recovers:
            await asyncio.Event().wait()

    async def handle(self, event: Event) -> None:
        self.events.append(event)
        if isinstance(event, MessageReceived) and event.message_id == self.breaks_at:
            raise ZeroDivisionError("a bug of ours")

    async def hear(self, note: Announcement | None) -> None:
        self.notes.append(note)

    async def answer(self, ask: ClusterQuery) -> ClusterReply:
        self.asked.append(ask)
        if self.says is None:
            raise ZeroDivisionError("a bug of ours")
        return self.says

    async def durable(self) -> bool:
        self.promises += 1
        return self.is_durable

    @property
    def numbers(self) -> list[int]:
        messages = [event.message if isinstance(event, MessageWaited) else event for event in self.events]
        return [int(message.message_id) for message in messages if isinstance(message, MessageReceived)]

    @property
    def came(self) -> list[int]:
        return [event.self_id for event in self.events if isinstance(event, Connected)]


@dataclass
class Book:
    """What the workers of a partition write down of events that may end them, over their lives."""

    begun: Counter[str] = field(default_factory=Counter)
    ended: list[str] = field(default_factory=list)
    is_shut: bool = False  # who is killed writes nothing any more

    async def begin(self, event: str) -> int:
        self.begun[event] += 1
        return self.begun[event] - 1

    def end(self, event: str) -> None:
        if self.is_shut:
            return
        self.ended.append(event)
        del self.begun[event]


class Stepped(SystemClock):
    """It goes as far as a test lets it, which sees how often somebody looked by it."""

    def __init__(self) -> None:
        self.ahead, self.looks = 0.0, 0

    def monotonic(self) -> float:
        return self.ahead

    async def sleep(self, seconds: float) -> None:
        self.looks += seconds == link.LOOK
        await super().sleep(seconds)

    async def looked(self) -> None:
        """Return once somebody looked twice: once at all that was there before."""
        looks = self.looks
        await until(lambda: self.looks >= looks + 2, seconds=PATIENCE)


@dataclass
class Shop:
    """A worker, and what stands beside it."""

    worker: Worker
    consumer: PartitionConsumer
    calls: GatewayCalls
    where: AccountLocations
    notices: NoteExchange
    asks: RequestExchange

    async def call(self, account: int, action: str, params: Mapping[str, object]) -> CallEnd:
        return await self.calls.make(account, action, params)

    def knows(self, account: int) -> bool:
        """Whether it was told of a gateway that has this account."""
        return any(there.self_id == account for there in self.where.accounts())


async def blocked(worker: Shop, told: list[str]) -> None:
    """Return once the worker knows of the alarm: that takes a moment to get to each connection, and is said there to
    who publishes.
    """

    def knows() -> bool:
        if not worker.notices._waiting:
            worker.notices.tell(RowChanged("limits", "1"))
        return bool(told)

    await until(knows, seconds=PATIENCE)


@asynccontextmanager
async def gateway_of(
    url: str, sockets: Sockets, name: str = "frost.gateway.a", clock: Clock | None = None, told: list[str] | None = None
) -> AsyncIterator[Gateway]:
    clock = clock or SystemClock()
    gateway = Gateway(
        name,
        link=BrokerLink(url, clock=SystemClock(), trouble=read([] if told is None else told)),
        partitions=PARTITIONS,
        calls=sockets.put,
        accounts=lambda: sockets.here,
        clock=clock,
    )
    async with asyncio.TaskGroup() as group:
        running = group.create_task(gateway.run())
        yield gateway
        running.cancel()


@asynccontextmanager
async def worker_of(
    url: str, desk: Desk, *, epoch: int = 1, book: Book | None = None, **more: Any
) -> AsyncIterator[Shop]:
    book = book or Book()
    ears = ClusterHandlers(desk.hear, desk.answer, desk.at_work, book.begin, book.end)
    clock, told = more.get("clock") or SystemClock(), more.get("told", [])
    share, aside = more.get("share", SHARE), more.get("aside", [])
    where = AccountLocations(share=share, clock=clock)
    name = RandomIds().trace()
    notices, asks = NoteExchange(name), RequestExchange(name, share)
    link = BrokerLink(url, clock=clock, trouble=read(more.get("line", [])))
    calls = GatewayCalls(link=link, where=where, epoch=lambda: epoch, ids=RandomIds())
    consumer = PartitionConsumer(where, clock=clock, trouble=read(told), lay_aside=lambda: aside.append(1))
    worker = Worker(
        link=link,
        where=where,
        consumer=consumer,
        calls=calls,
        notices=notices,
        asks=asks,
        clock=clock,
        trouble=read(told),
    )
    async with asyncio.TaskGroup() as group:
        running = group.create_task(worker.run(desk, desk.durable, ears))
        await until(lambda: worker.is_up, seconds=PATIENCE)
        yield Shop(worker, consumer, calls, where, notices, asks)
        running.cancel()
