"""The workers' side: events in, each acknowledged once the journal has it, and calls out."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final, NoReturn

from aio_pika import DeliveryMode, Message
from aio_pika.abc import AbstractChannel, AbstractConnection, AbstractIncomingMessage
from aio_pika.exceptions import AMQPError, DeliveryError

from adapters.broker.link import Link, watch
from adapters.broker.payloads import (
    HEADER_VERSION,
    VERSION,
    Answer,
    Call,
    Presence,
    pack,
    unpack,
)
from adapters.broker.topology import DEAD, declare
from adapters.broker.whereabouts import Whereabouts
from bot.domain import codec
from bot.domain.errors import ActionRefused, ActionUnanswered, NotConnected
from bot.domain.events import Connected, Event
from bot.domain.ports import Clock, EventSink, Ids

PREFETCH: Final = 1000  # events of a partition that are not acknowledged
LARGEST: Final = 8 * 2**20  # bytes of a call
TOO_LARGE: Final = 413
DEADLINE: Final = 36.0  # seconds; the gateway itself waits 30, and 5 once a socket is gone
SLOWEST: Final = 128_000  # bytes a second, added for large calls
WRITTEN_WITHIN: Final = 5.0  # seconds a call waits for the broker, or for its gateway to take it
LOOK: Final = 1.0  # seconds between two looks whether a gateway that is to answer is there
AGAIN: Final = 0.5  # seconds until a journal in trouble is asked once more

logger = logging.getLogger(__name__)


class Worker:
    """Takes events from all partitions, and puts calls to accounts wherever they are.

    `epoch` is that of the lease this process has: gateways refuse an older one's calls. An event
    that cannot be read is set aside in the queue frost.dead, which `trouble` is told.
    """

    def __init__(
        self,
        *,
        link: Link,
        partitions: int,
        where: Whereabouts,
        epoch: Callable[[], int],
        clock: Clock,
        ids: Ids,
        trouble: Callable[[str], None],
    ) -> None:
        self._link = link
        self._partitions = partitions
        self._where = where
        self._epoch = epoch
        self._clock = clock
        self._trouble = trouble
        self._boot = ids.trace()
        self._numbers = itertools.count(1)
        self._answers: dict[str, asyncio.Future[Answer]] = {}
        self._calling: AbstractChannel | None = None
        self._replies = ""
        self._kept: list[AbstractIncomingMessage] = []
        self._due = asyncio.Event()
        self.acknowledged = 0

    @property
    def is_up(self) -> bool:
        """Whether the broker can be reached."""
        return self._link.is_up

    def knows(self, account: int) -> bool:
        """Whether a gateway has this account."""
        return any(there.self_id == account for there in self._where.accounts())

    async def run(self, sink: EventSink, durable: Callable[[], Awaitable[bool]]) -> NoReturn:
        """Hand on events for ever; `durable` waits until all that came of them is written, False
        where that cannot be promised. Raises ConfigError for a broker of another cluster.
        """

        async def session(connection: AbstractConnection) -> None:
            try:
                await self._session(connection, sink, durable)
            finally:
                self._hang_up()

        await self._link.keep(session)

    async def _session(
        self,
        connection: AbstractConnection,
        sink: EventSink,
        durable: Callable[[], Awaitable[bool]],
    ) -> None:
        events, calls = await connection.channel(), await connection.channel(on_return_raises=True)
        await events.set_qos(prefetch_count=PREFETCH)
        topology = await declare(events, self._partitions)
        replies = await calls.declare_queue(exclusive=True, auto_delete=True)
        await replies.consume(self._answered, no_ack=True)
        presence = await calls.declare_queue(exclusive=True, auto_delete=True)
        await presence.bind(topology.presence)
        came: asyncio.Queue[AbstractIncomingMessage | Connected] = asyncio.Queue()

        async def hear(message: AbstractIncomingMessage) -> None:
            for account in self._hear(message):
                came.put_nowait(Connected(self_id=account, time=self._clock.now()))

        await presence.consume(hear, no_ack=True)
        self._calling, self._replies, self._kept = calls, replies.name, []
        async with asyncio.TaskGroup() as group:
            group.create_task(watch(events))
            group.create_task(watch(calls))
            group.create_task(self._acknowledge(durable))
            for queue in topology.partitions:
                await queue.consume(came.put)
            self._link.is_up = True
            while True:
                match await came.get():
                    case Connected() as event:
                        await sink.handle(event)
                    case message:
                        await self._take(message, sink)

    # --- events -----------------------------------------------------------------------------------

    async def _take(self, message: AbstractIncomingMessage, sink: EventSink) -> None:
        try:
            event: Event = unpack(Event, message.body, message.headers.get(HEADER_VERSION))
        except codec.Unreadable as error:
            logger.exception("an event cannot be read, and is kept in %s", DEAD)
            self._trouble(
                f"An event from a gateway cannot be read ({str(error)[:200]}). It is kept in the"
                f" queue {DEAD}; are all parts of the cluster of about the same version?"
            )
            await message.reject(requeue=False)
            return
        await sink.handle(event)
        self._kept.append(message)
        self._due.set()

    async def _acknowledge(self, durable: Callable[[], Awaitable[bool]]) -> NoReturn:
        while True:
            await self._due.wait()
            self._due.clear()
            handled, self._kept = self._kept, []
            while not await durable():
                await self._clock.sleep(AGAIN)
            for message in handled:
                await message.ack()
            self.acknowledged += len(handled)

    # --- accounts and calls -----------------------------------------------------------------------

    def _hear(self, message: AbstractIncomingMessage) -> tuple[int, ...]:
        try:
            version = message.headers.get(HEADER_VERSION)
            return self._where.hear(unpack(Presence, message.body, version))
        except codec.Unreadable:
            logger.exception("what a gateway says of its accounts cannot be read")
            return ()

    async def call(self, account: int, action: str, params: Any) -> Answer:
        """Put an action to the account's server, wherever that is connected.

        Raises NotConnected (no gateway, no broker: nothing was done), ActionRefused (over 8 MB),
        ActionUnanswered (it was on its way, and nobody said what became of it).
        """
        gateway = self._where.gateway(account)
        body = pack(Call(account, action, params, self._epoch()))
        if len(body) > LARGEST:
            raise ActionRefused(
                action,
                retcode=TOO_LARGE,
                wording=f"it has {len(body) / 2**20:.1f} MB, over 8: too large for a cluster",
            )
        number = f"{self._boot}-{next(self._numbers)}"
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._answers[number] = answer
        try:
            await self._publish(gateway, body, number)
            async with asyncio.timeout(DEADLINE + len(body) / SLOWEST):
                while not (await asyncio.wait({answer}, timeout=LOOK))[0]:
                    if not self._where.has(gateway):
                        raise ActionUnanswered(f"{action}: its gateway is gone")
            return answer.result()
        except TimeoutError:
            raise ActionUnanswered(f"{action}: its gateway did not answer") from None
        finally:
            del self._answers[number]

    async def _publish(self, gateway: str, body: bytes, number: str) -> None:
        channel = self._calling
        if channel is None:
            raise NotConnected("the broker cannot be reached")
        message = Message(
            body,
            headers={HEADER_VERSION: VERSION},
            content_type="application/json",
            delivery_mode=DeliveryMode.NOT_PERSISTENT,
            correlation_id=number,
            reply_to=self._replies,
            expiration=WRITTEN_WITHIN,
        )
        try:
            async with asyncio.timeout(WRITTEN_WITHIN):
                await channel.default_exchange.publish(message, gateway)
        except DeliveryError:  # nobody has a queue of this name
            self._where.forget(gateway)
            raise NotConnected("the gateway of this account is gone") from None
        except (AMQPError, OSError, asyncio.InvalidStateError, TimeoutError) as error:
            raise ActionUnanswered(f"the broker did not confirm a call ({error})") from None

    async def _answered(self, message: AbstractIncomingMessage) -> None:
        answer = self._answers.get(message.correlation_id or "")
        if answer is None or answer.done():
            return
        try:
            version = message.headers.get(HEADER_VERSION)
            answer.set_result(unpack(Answer, message.body, version))
        except codec.Unreadable as error:
            answer.set_exception(ActionUnanswered(f"an answer cannot be read: {error}"))

    def _hang_up(self) -> None:
        """The connection is gone: no answer comes any more, and whoever is there comes anew: what
        waits for an account is sent when it comes.
        """
        self._calling = None
        self._where.forget_all()
        for answer in self._answers.values():
            if not answer.done():
                answer.set_exception(ActionUnanswered("the broker was lost before an answer came"))
