"""The gateways' side: events out, calls in, and which accounts are here."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Final, NoReturn

from aio_pika import DeliveryMode, Message
from aio_pika.abc import AbstractChannel, AbstractConnection, AbstractIncomingMessage
from aio_pika.exceptions import DeliveryError, PublishError
from msgspec.structs import replace
from pamqp.common import FieldValue

from adapters.broker.link import BrokerLink, Lost, in_tasks, watch
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
from adapters.broker.topology import Topology, declare, queue_of
from bot.domain import codec
from bot.domain.events import Connected, Event, Heartbeat
from bot.domain.ports import Clock
from bot.domain.shares import partition_of

BACKLOG: Final = 20_000  # events that wait here for a broker that is away
BATCH: Final = 100  # events on their way at once
CONFIRMED_WITHIN: Final = 10.0  # seconds
# Seconds, also where nothing changed: a worker that takes over can call nobody before it has heard.
PRESENCE_EVERY: Final = 0.5
LOOK: Final = 0.2  # seconds between two looks at the accounts
NO_HEADERS: Final[Mapping[str, FieldValue]] = MappingProxyType({})

logger = logging.getLogger(__name__)


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
        self._partitions = partitions
        self._calls = calls
        self._accounts = accounts
        self._clock = clock
        self._waiting: deque[tuple[Event, float]] = deque()  # and when it came
        self._due, self._empty = asyncio.Event(), asyncio.Event()
        self._empty.set()
        self._epochs: Counter[int] = Counter()
        self._times: Counter[int] = Counter()
        self.published = self.lost = self.refused = 0
        self._lost_at = 0.0

    @property
    def waiting(self) -> int:
        """Events that the broker has not confirmed yet."""
        return len(self._waiting)

    @property
    def is_up(self) -> bool:
        """Whether the broker takes what comes."""
        return self._link.is_up

    async def handle(self, event: Event) -> None:
        """Take an event; one that finds 20,000 waiting is lost, and so is one that finds its
        partition full: that is said.
        """
        if isinstance(event, Heartbeat):  # part of what is told of the account
            return
        if isinstance(event, Connected):  # so is this, also to workers that come later
            self._times[event.self_id] += 1
            return
        if len(self._waiting) >= BACKLOG:
            self._lose("the broker takes none")
            return
        self._waiting.append((event, self._clock.now()))
        self._empty.clear()
        self._due.set()

    def _lose(self, why: str) -> None:
        self.lost, self._lost_at = self.lost + 1, self._clock.now()
        if self.lost == 1 or self.lost % 1000 == 0:
            logger.error("%d events are lost: %s", self.lost, why)

    async def wait_published(self) -> None:
        """Return once the broker has confirmed all that came."""
        await self._empty.wait()

    async def run(self) -> NoReturn:
        """Work for ever. Raises ConfigError for a broker of another cluster."""
        await self._link.keep(self._session)

    async def _session(self, connection: AbstractConnection) -> None:
        out = await connection.channel(on_return_raises=True)
        back = await connection.channel(publisher_confirms=False)  # who asked has a deadline
        topology = await declare(connection, out, self._partitions)
        desk = await back.declare_queue(self._name, exclusive=True, auto_delete=True)
        async with asyncio.TaskGroup() as group:
            await desk.consume(in_tasks(group, partial(self._answer, back)), no_ack=True)
            group.create_task(watch(out))
            group.create_task(watch(back))
            group.create_task(self._tell_accounts(topology))
            self._link.is_up = True
            await self._publish_all(topology)

    # --- events -----------------------------------------------------------------------------------

    async def _publish_all(self, topology: Topology) -> NoReturn:
        """Publish what waits, in order; what was not confirmed is published again on the next
        connection: workers know an event that comes twice.
        """
        while True:
            while not self._waiting:
                self._empty.set()
                self._due.clear()
                await self._due.wait()
            batch = [self._waiting[place] for place in range(min(BATCH, len(self._waiting)))]
            async with asyncio.TaskGroup() as group:
                sent = [group.create_task(self._publish(topology, *one)) for one in batch]
                await self._confirmed(sent)
            taken = [one.result() for one in sent]
            if not all(taken) and not await topology.is_full():
                raise Lost("the broker refused events that it has room for")
            for is_taken in taken:
                self._waiting.popleft()
                if is_taken:
                    self.published += 1
                else:
                    self._lose("their partition is full, as no worker takes them in time")

    async def _confirmed(self, sent: Sequence[asyncio.Task[bool]]) -> None:
        """Return once all are. Under an alarm of the broker that lasts as long as the alarm does;
        else it has its time, and Lost is raised.
        """
        while (await asyncio.wait(sent, timeout=CONFIRMED_WITHIN))[1]:
            if not self._link.is_blocked:
                raise Lost(f"no confirmation within {CONFIRMED_WITHIN:g} s")

    async def _publish(self, topology: Topology, event: Event, taken: float) -> bool:
        """Whether it has a place in its partition."""
        headers: dict[str, FieldValue] = {
            HEADER_GATEWAY: self._name,
            HEADER_TAKEN: round(taken * 1000),
        }
        message = _message(pack(event), persistent=True, headers=headers)
        queue = queue_of(partition_of(event.self_id, self._partitions))
        try:
            await topology.events.publish(message, queue)
        except PublishError:  # nobody has such a queue
            raise
        except DeliveryError:  # x-overflow, or a queue in trouble
            return False
        return True

    # --- accounts ---------------------------------------------------------------------------------

    async def _tell_accounts(self, topology: Topology) -> NoReturn:
        told, due = None, 0.0
        while True:
            now = self._clock.monotonic()
            here = self._here()
            if here.accounts != told or now >= due:
                message = _message(pack(here))
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
            lost_at=self._lost_at,
            now=self._clock.now(),
            ticks=self._clock.monotonic(),
        )

    # --- calls ------------------------------------------------------------------------------------

    async def _answer(self, channel: AbstractChannel, message: AbstractIncomingMessage) -> None:
        try:
            body = pack(await self._done(message))
            if len(body) > LARGEST:
                why = f"its answer has {len(body) / 2**20:.1f} MB, over 8: too large for a cluster"
                body = pack(CallEnd("unanswered", wording=why))
        except Exception as error:  # nobody else's calls may end with it
            logger.exception("what became of a call cannot be told")
            body = pack(CallEnd("unanswered", wording=type(error).__name__))
        if message.reply_to:
            reply = _message(body, correlation=message.correlation_id)
            await channel.default_exchange.publish(reply, message.reply_to, mandatory=False)

    async def _done(self, message: AbstractIncomingMessage) -> CallEnd:
        try:
            call: GatewayCall = unpack(
                GatewayCall, message.body, message.headers.get(HEADER_VERSION)
            )
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


def _message(
    body: bytes,
    *,
    persistent: bool = False,
    correlation: str | None = None,
    headers: Mapping[str, FieldValue] = NO_HEADERS,
) -> Message:
    mode = DeliveryMode.PERSISTENT if persistent else DeliveryMode.NOT_PERSISTENT
    return Message(
        body,
        headers={HEADER_VERSION: VERSION, **headers},
        content_type="application/json",
        delivery_mode=mode,
        correlation_id=correlation,
    )
