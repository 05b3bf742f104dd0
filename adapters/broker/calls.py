"""Calls by a worker to accounts, through the gateways that have their sockets."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from typing import Any, Final, NoReturn

from aio_pika.abc import AbstractChannel
from aio_pika.exceptions import ChannelInvalidStateError, DeliveryError

from adapters.broker.account_locations import AccountLocations
from adapters.broker.link import BrokerLink, ConnectionLost, raise_as_lost
from adapters.broker.payloads import (
    HEADER_VERSION,
    LARGEST,
    VERSION,
    CallEnd,
    GatewayCall,
    pack,
    unpack,
)
from adapters.broker.wire import Delivered, consume, headers_of, properties, publish
from bot.core import codec
from bot.core.errors import ActionRefused, ActionUnanswered, NotConnected
from frostagent.types.ports import Clock, Ids

TOO_LARGE: Final = 413
DEADLINE: Final = 36.0  # seconds; the gateway waits 30, and 5 after its socket closed
SLOWEST: Final = 128_000  # bytes a second, added for large calls
WRITTEN_WITHIN: Final = 5.0  # seconds for the broker and the gateway to take a call
LOOK: Final = 1.0  # seconds between two checks that the called gateways are present


class GatewayCalls:
    """Makes calls and waits for their results. `epoch` is that of the lease on the accounts'
    partition: gateways refuse calls with an older one.
    """

    def __init__(
        self, *, link: BrokerLink, where: AccountLocations, epoch: Callable[[], int], ids: Ids
    ) -> None:
        self._link = link
        self._where = where
        self._epoch = epoch
        self._boot = ids.trace()
        self._numbers = itertools.count(1)
        self._under_way: dict[str, tuple[str, asyncio.Future[CallEnd]]] = {}  # gateway, result
        self._channel: AbstractChannel | None = None
        self._replies = ""

    async def connect(self, channel: AbstractChannel) -> None:
        """Use this channel, which must raise for returned messages. Raises aio-pika's errors."""
        replies = await channel.declare_queue(exclusive=True, auto_delete=True)
        await consume(channel, replies.name, self._answered, no_ack=True)
        self._channel, self._replies = channel, replies.name

    def disconnect(self) -> None:
        """The connection is lost: no answers will arrive."""
        self._channel = None
        for _, answer in self._under_way.values():
            if not answer.done():
                answer.set_result(CallEnd("unanswered", wording="the broker was lost meanwhile"))

    async def make(self, account: int, action: str, params: Any, *, beside: int = 0) -> CallEnd:
        """Call an action on the account's server, wherever it is connected. The server is given
        time to fetch `beside` bytes.

        Raises NotConnected (no gateway or broker: nothing was done), ActionRefused (over 8 MB),
        ActionUnanswered (sent, with an unknown result).
        """
        gateway = self._where.gateway_of(account)
        # The call may wait in our socket while the broker reads nothing. Once it is reported as
        # unanswered, it must not be carried out any more.
        until = self._where.deadline(gateway, WRITTEN_WITHIN)
        body = pack(GatewayCall(account, action, params, self._epoch(), until, beside))
        if len(body) > LARGEST:
            raise ActionRefused(
                action,
                retcode=TOO_LARGE,
                wording=f"it has {len(body) / 2**20:.1f} MB, over 8: too large for a cluster",
            )
        number = f"{self._boot}-{next(self._numbers)}"
        answer: asyncio.Future[CallEnd] = asyncio.get_running_loop().create_future()
        self._under_way[number] = gateway, answer
        is_written = False
        try:
            async with asyncio.timeout(WRITTEN_WITHIN) as patience:
                await self._publish(gateway, body, number)
                is_written = True
                more = DEADLINE + (len(body) + beside) / SLOWEST
                patience.reschedule(asyncio.get_running_loop().time() + more)
                return await answer
        except TimeoutError:
            why = (
                "its gateway did not answer" if is_written else "the broker did not confirm a call"
            )
            raise ActionUnanswered(f"{action}: {why}") from None
        finally:
            del self._under_way[number]

    async def watch(self, clock: Clock) -> NoReturn:
        """End calls to absent gateways, for ever."""
        while True:
            await clock.sleep(LOOK)
            for gateway, answer in self._under_way.values():
                if not answer.done() and not self._where.is_present(gateway):
                    answer.set_result(CallEnd("unanswered", wording="its gateway is gone"))

    async def _publish(self, gateway: str, body: bytes, number: str) -> None:
        channel = self._channel
        if channel is None:
            raise NotConnected("the broker cannot be reached")
        if self._link.is_blocked:
            raise NotConnected("the broker takes nothing just now")
        given = properties(
            {HEADER_VERSION: VERSION},
            message_id=number,
            correlation_id=number,
            reply_to=self._replies,
            expiration=f"{WRITTEN_WITHIN * 1000:.0f}",
        )
        try:
            with raise_as_lost():
                await publish(channel, body, gateway, given)
        except DeliveryError:  # no queue of this name
            self._where.forget(gateway)
            raise NotConnected("the gateway of this account is gone") from None
        except ChannelInvalidStateError:  # closed before anything was written
            raise NotConnected("the broker cannot be reached") from None
        except ConnectionLost as error:
            raise ActionUnanswered(f"the broker did not confirm a call ({error})") from None

    async def _answered(self, message: Delivered) -> None:
        number = message.header.properties.correlation_id or ""
        _, answer = self._under_way.get(number, ("", None))
        if answer is None or answer.done():
            return
        try:
            version = headers_of(message).get(HEADER_VERSION)
            answer.set_result(unpack(CallEnd, message.body, version))
        except codec.Unreadable as error:
            answer.set_result(CallEnd("unanswered", wording=f"it cannot be read: {error}"))
