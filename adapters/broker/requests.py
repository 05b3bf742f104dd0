"""Queries between the bots of a cluster; each has a queue for its partition's and for all."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Callable
from functools import partial
from typing import Final

from aio_pika import DeliveryMode, Message
from aio_pika.abc import AbstractChannel, AbstractExchange, AbstractIncomingMessage
from aio_pika.exceptions import ChannelInvalidStateError, DeliveryError
from pamqp.common import FieldValue

from adapters.broker.link import GONE, ConnectionLost, in_tasks, raise_as_lost
from adapters.broker.partitions import ClusterPartition, partition_of
from adapters.broker.payloads import HEADER_VERSION, LARGEST, VERSION, pack, unpack
from adapters.broker.queries import AnswerQuery, ClusterQuery, ClusterReply
from adapters.broker.topology import QUESTIONS
from bot.core import codec
from bot.core.errors import ActionUnanswered, NotConnected

ALL: Final = "all"
HEADER_ORIGIN: Final = "origin"
ALL_WITHIN: Final = 1.0  # seconds for the answers of all
ONE_WITHIN: Final = 8.0  # seconds for the answer of one, which may have to wait for QQ

logger = logging.getLogger(__name__)


class RequestExchange:
    """Queries the other bots. `origin` is this bot, whose own queries are ignored."""

    def __init__(self, origin: str, share: ClusterPartition) -> None:
        self._origin = origin
        self._share = share
        self._numbers = itertools.count(1)
        self._open: dict[str, Callable[[ClusterReply], None]] = {}
        self._exchange: AbstractExchange | None = None
        self._replies = ""

    @property
    def count(self) -> int:
        """Number of other bots in the cluster."""
        return self._share.partitions - 1

    # --- asking -----------------------------------------------------------------------------------

    async def ask_all(self, ask: ClusterQuery, /) -> tuple[ClusterReply, ...]:
        """The others' answers, within a second. Never raises."""
        told, whole = list[ClusterReply](), asyncio.Event()

        def deliver(one: ClusterReply) -> None:
            told.append(one)
            if len(told) >= self.count:
                whole.set()

        if not self.count:
            return ()
        number = self._expect(deliver)
        try:
            async with asyncio.timeout(ALL_WITHIN):
                await self._publish(ask, ALL, number, ALL_WITHIN)
                await whole.wait()
        except (TimeoutError, NotConnected, ActionUnanswered) as error:
            logger.debug("%d of %d bots have answered: %s", len(told), self.count, error)
        finally:
            del self._open[number]
        return tuple(told)

    async def ask(self, account: int, ask: ClusterQuery, /) -> ClusterReply:
        """The answer of the bot with this account. Raises NotConnected (nothing was done) and
        ActionUnanswered (unknown).
        """
        answer: asyncio.Future[ClusterReply] = asyncio.get_running_loop().create_future()

        def deliver(one: ClusterReply) -> None:
            if not answer.done():
                answer.set_result(one)

        number, key = self._expect(deliver), str(partition_of(account, self._share.partitions))
        try:
            async with asyncio.timeout(ONE_WITHIN):
                await self._publish(ask, key, number, ONE_WITHIN)
                return await answer
        except TimeoutError:
            raise ActionUnanswered(f"who has account {account} did not answer") from None
        finally:
            del self._open[number]

    def _expect(self, deliver: Callable[[ClusterReply], None]) -> str:
        number = f"{self._origin}-{next(self._numbers)}"
        self._open[number] = deliver
        return number

    async def _publish(self, ask: ClusterQuery, key: str, number: str, seconds: float) -> None:
        """Publish a query that expires after `seconds`."""
        if self._exchange is None:
            raise NotConnected("the broker cannot be reached")
        headers: dict[str, FieldValue] = {HEADER_VERSION: VERSION, HEADER_ORIGIN: self._origin}
        message = Message(
            pack(ask),
            headers=headers,
            content_type="application/json",
            delivery_mode=DeliveryMode.NOT_PERSISTENT,
            correlation_id=number,
            reply_to=self._replies,
            expiration=seconds,
        )
        try:
            with raise_as_lost():
                await self._exchange.publish(message, key)
        except DeliveryError:
            raise NotConnected("no bot has this account just now") from None
        except ChannelInvalidStateError:  # closed before anything was written
            raise NotConnected("the broker cannot be reached") from None
        except ConnectionLost as error:
            raise ActionUnanswered(f"the broker did not confirm ({error})") from None

    # --- answering --------------------------------------------------------------------------------

    async def connect(
        self, channel: AbstractChannel, group: asyncio.TaskGroup, answer: AnswerQuery
    ) -> None:
        """Use this channel, which must raise for returned messages, and `answer` other bots'
        queries in tasks of the `group`. Raises aio-pika's errors.
        """
        replies = await channel.declare_queue(exclusive=True, auto_delete=True)
        await replies.consume(self._receive, no_ack=True)
        exchange = await channel.get_exchange(QUESTIONS, ensure=False)
        asked = await channel.declare_queue(exclusive=True, auto_delete=True)
        for key in (ALL, str(self._share.partition)):
            await asked.bind(exchange, key)

        await asked.consume(in_tasks(group, partial(self._answer, channel, answer)), no_ack=True)
        self._exchange, self._replies = exchange, replies.name

    def disconnect(self) -> None:
        """Forget the lost connection: queries raise NotConnected until `connect`."""
        self._exchange = None

    async def _answer(
        self, channel: AbstractChannel, answer: AnswerQuery, message: AbstractIncomingMessage
    ) -> None:
        if message.headers.get(HEADER_ORIGIN) == self._origin:
            return
        try:
            version = message.headers.get(HEADER_VERSION)
            body = pack(await answer(unpack(ClusterQuery, message.body, version)))
        except Exception:  # another version, or a bug: the query times out
            logger.exception("what another bot asks is not answered")
            return
        if len(body) > LARGEST:
            logger.error("what another bot asks is not answered: it takes %d bytes", len(body))
            return
        told = Message(
            body,
            headers={HEADER_VERSION: VERSION},
            content_type="application/json",
            delivery_mode=DeliveryMode.NOT_PERSISTENT,
            correlation_id=message.correlation_id,
        )
        try:
            async with asyncio.timeout(ONE_WITHIN):
                with raise_as_lost():
                    await channel.default_exchange.publish(
                        told, message.reply_to or "", mandatory=False
                    )
        except GONE as error:  # the asker's connection, by now
            logger.info("who asked does not hear the answer: %s", error)

    async def _receive(self, message: AbstractIncomingMessage) -> None:
        if (deliver := self._open.get(message.correlation_id or "")) is None:
            return  # its query has timed out
        try:
            deliver(unpack(ClusterReply, message.body, message.headers.get(HEADER_VERSION)))
        except codec.Unreadable:
            logger.exception("what another bot answers cannot be read")
