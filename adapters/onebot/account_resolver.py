"""Determines the account of a connection from its token, header, events and an API call, and
claims that account's place in the registry.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Collection
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from websockets.frames import CloseCode

from adapters.onebot.calls import OneBotCalls
from adapters.onebot.peers import Peer, PeerRegistry, Role
from adapters.onebot.protocol import read_account
from bot.core.errors import TransportError
from bot.core.events import Connected, Event
from bot.core.ports import EventSink
from frostagent.types.ports import Clock


class AccountSource(IntEnum):
    """Where an account number comes from; a higher value is trusted over a lower one."""

    NOBODY = 0
    HEADER = 1  # X-Self-ID: onebots writes another number there than in its events
    ANSWER = 2  # get_login_info
    EVENT = 3  # the first one decides: messages are answered to the account they came to
    TOKEN = 4  # it belongs to that account only


@dataclass(frozen=True, slots=True)
class Handshake:
    """What is known when a connection opens. `hint` is the account in its header, 0 for none.

    `bound` is the account that its token belongs to, 0 for none. A connection with another token
    cannot serve the `reserved` accounts, which have tokens of their own.
    """

    role: Role = Role.UNIVERSAL
    hint: int = 0
    bound: int = 0
    reserved: Collection[int] = ()

    def may_be(self, account: int) -> bool:
        """Whether its token permits this account."""
        return account == self.bound or account not in self.reserved


class Identity:
    """The account of one connection; 0 until it is known. It is final once an event or the token
    has named it.
    """

    def __init__(self) -> None:
        self.account = 0
        self.source = AccountSource.NOBODY

    @property
    def is_settled(self) -> bool:
        """Whether the account is final."""
        return self.source >= AccountSource.EVENT

    def is_news(self, account: int, source: AccountSource) -> bool:
        """Whether this source is trusted more, and names another account."""
        return account > 0 and source > self.source and account != self.account

    def learn(self, account: int, source: AccountSource) -> None:
        """Store the account unless a source that is trusted as much already named one."""
        if account > 0 and source > self.source:
            self.account, self.source = account, source


logger = logging.getLogger(__name__)

SAYS_WITHIN: Final = 5.0  # seconds to answer; after that its header is used

_TURNED_AWAY: Final = {
    "is connected already": "account %d dialled again while its connection lives, and is refused:"
    " its OneBot server has two entries for this bot (in NapCat two websocket clients); remove one",
    "needs its own token": "refused a connection for account %d: ONEBOT_ACCESS_TOKEN has a token"
    " for this account, give its OneBot server that one",
}


class AccountResolver:
    """Resolves the account of one connection, `peer`. `tasks` is the task group of its run."""

    def __init__(
        self,
        peer: Peer,
        handshake: Handshake,
        *,
        tasks: asyncio.TaskGroup,
        peers: PeerRegistry,
        calls: OneBotCalls,
        sink: EventSink,
        clock: Clock,
    ) -> None:
        self.identity = Identity()
        self.joined = asyncio.Event()
        self.is_turned_away = False
        self._peer = peer
        self._handshake = handshake
        self._tasks = tasks
        self._peers = peers
        self._calls = calls
        self._sink = sink
        self._clock = clock
        self._claiming = asyncio.Lock()
        self._ask = asyncio.Event()  # the account is known, or must be asked for at once

    async def is_ours(self, event: Event) -> bool:
        """Whether an event belongs to the connection's account, which the first event decides."""
        if not self.identity.is_settled:
            await self.claim(event.self_id, AccountSource.EVENT)
        if event.self_id == self.identity.account:
            return True
        if not self.is_turned_away and self._is_news("brings", event.self_id):
            logger.warning(
                "the connection of account %d brings events of account %d, which are dropped:"
                " let each account have a connection of its own",
                self.identity.account,
                event.self_id,
            )
        return False

    async def claim(self, account: int, source: AccountSource) -> None:
        """Take the account if its source is trusted; close the connection if the account is taken
        or needs another token.
        """
        async with self._claiming:
            if not self.identity.is_news(account, source):
                self.identity.learn(account, source)
            elif not self._handshake.may_be(account):
                await self._turn_away(account, "needs its own token")
            elif await self._peers.has_place(account, self._peer.role, now=self._clock.monotonic()):
                if self.identity.account:
                    self._peers.leave(self._peer)
                self.identity.learn(account, source)
                await self._join()
            else:
                await self._turn_away(account, "is connected already")

    async def resolve(self) -> None:
        """Wait for the first event; if there is none, ask the server; if it does not answer, use
        the header. A connection for calls only never delivers an event.
        """
        role = self._peer.role
        if role is not Role.API:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._peers.introduced_within):
                    await self._ask.wait()
        if self.identity.account == 0 and role is not Role.EVENT:
            await self.claim(await self._ask_for_account(), AccountSource.ANSWER)
        await self.claim(self._handshake.hint, AccountSource.HEADER)

    def ask_at_once(self) -> None:
        """Stop waiting in `resolve`: an event without an account has come."""
        self._ask.set()

    async def _ask_for_account(self) -> int:
        try:
            async with asyncio.timeout(SAYS_WITHIN if self._handshake.hint else None):
                reply = await self._calls.make(self._peer, "get_login_info", {})
        except (TransportError, TimeoutError) as error:
            logger.warning("a OneBot server does not say whose it is: %s", error)
            return 0
        return read_account(reply.data)

    async def _join(self) -> None:
        account = self.identity.account
        self._ask.set()
        self.joined.set()
        replaced = self._peers.join(self._peer)
        logger.info("account %d is connected (%s)", account, self._peer.role)
        if replaced is not None:
            logger.info("account %d connected once more, its older connection is closed", account)
            self._tasks.create_task(replaced.close("replaced by a newer connection"))
        if self._peers.takes_calls(account):
            await self._say_connected()

    async def _say_connected(self) -> None:
        """Tell the sink, even if the server sends no greeting here, as on go-cqhttp's /api."""
        account = self.identity.account
        try:
            await self._sink.handle(
                Connected(self_id=account, time=self._clock.now(), change="connect")
            )
        except Exception:
            logger.exception("account %d: nobody could be told that it is connected", account)

    async def _turn_away(self, account: int, reason: str) -> None:
        self.is_turned_away = True
        level = logging.WARNING if self._is_news(reason, account) else logging.DEBUG
        logger.log(level, _TURNED_AWAY[reason], account)
        await self._peer.close(f"account {account} {reason}", code=CloseCode.TRY_AGAIN_LATER)

    def _is_news(self, what: str, account: int) -> bool:
        about = (what, account, self._peer.role)
        return self._peers.duplicates.is_news(about, now=self._clock.monotonic())
