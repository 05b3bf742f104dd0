"""The gateways' side: events out, calls in, and which accounts are here."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final, NoReturn

from aio_pika import DeliveryMode, Message
from aio_pika.abc import AbstractChannel, AbstractConnection
from msgspec.structs import replace

from adapters.broker.link import BrokerLink, watch
from adapters.broker.outflow import Outflow
from adapters.broker.payloads import (
    HEADER_VERSION,
    LARGEST,
    VERSION,
    CallEnd,
    GatewayCall,
    Presence,
    pack,
    unpack,
)
from adapters.broker.topology import Topology, declare
from adapters.broker.wire import Delivered, consume, headers_of, properties, publish
from bot.domain import codec
from bot.domain.events import Connected, Event, Heartbeat
from bot.domain.notes import partition_of
from bot.domain.ports import Clock

# Seconds, also where nothing changed: a worker that takes over can call nobody before it has heard.
PRESENCE_EVERY: Final = 0.5
LOOK: Final = 0.2  # seconds between two looks at the accounts

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
        self._outflow = Outflow(name, link=link, partitions=partitions, clock=clock)
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
        return self._outflow.waiting

    @property
    def published(self) -> int:
        """Events that the broker has confirmed."""
        return self._outflow.published

    @property
    def lost(self) -> int:
        """Events that nobody will get."""
        return self._outflow.lost

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
        self._outflow.add(event)

    async def wait_published(self) -> None:
        """Return once the broker has confirmed all that came."""
        await self._outflow.wait_empty()

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
            self._outflow.begin(group, out)
            await watch(out)

    # --- accounts ---------------------------------------------------------------------------------

    async def _tell_accounts(self, topology: Topology) -> NoReturn:
        told, due = None, 0.0
        while True:
            now = self._clock.monotonic()
            here = self._here()
            if here.accounts != told or now >= due:
                message = Message(
                    pack(replace(here, asked=self._outflow.take_asked())),
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
            lost_at=self._outflow.lost_at,
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
