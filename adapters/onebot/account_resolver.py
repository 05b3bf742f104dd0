"""Whose connection one is: who says so, whether that is believed, and whether the account's place
is free.
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
from bot.domain.errors import TransportError
from bot.domain.events import Connected, Event
from bot.domain.ports import Clock, EventSink


class AccountSource(IntEnum):
    """Who says whose connection it is; the later ones are believed before the earlier ones."""

    NOBODY = 0
    HEADER = 1  # X-Self-ID: onebots writes another name there than its events do
    ANSWER = 2  # get_login_info
    EVENT = 3  # the first one decides: messages are answered to the account they came to
    TOKEN = 4  # the token is that account's alone


@dataclass(frozen=True, slots=True)
class Handshake:
    """The beginning of a connection. `hint` is the account in its header, 0 for none.

    With `bound` its token belongs to that account, and it is of no other; `reserved` are the
    accounts that have such a token, which others cannot be.
    """

    role: Role = Role.UNIVERSAL
    hint: int = 0
    bound: int = 0
    reserved: Collection[int] = ()

    def may_be(self, account: int) -> bool:
        """Whether its token lets it be this account."""
        return account == self.bound or account not in self.reserved


class Identity:
    """The account of one connection; 0 until it is known. Once an event or the token has named it,
    it stays.
    """

    def __init__(self) -> None:
        self.account = 0
        self.source = AccountSource.NOBODY

    @property
    def is_settled(self) -> bool:
        """Whether nothing can change it any more."""
        return self.source >= AccountSource.EVENT

    def is_news(self, account: int, source: AccountSource) -> bool:
        """Whether this is believed, and another account than before."""
        return account > 0 and source > self.source and account != self.account

    def learn(self, account: int, source: AccountSource) -> None:
        """Note who says that it is whose; what is not to be believed changes nothing."""
        if account > 0 and source > self.source:
            self.account, self.source = account, source


logger = logging.getLogger(__name__)

SAYS_WITHIN: Final = 5.0  # seconds until we believe its header instead

_TURNED_AWAY: Final = {
    "is connected already": "account %d dialled again while its connection lives, and is refused:"
    " its OneBot server has two entries for this bot (in NapCat two websocket clients); remove one",
    "needs its own token": "refused a connection for account %d: ONEBOT_ACCESS_TOKEN has a token"
    " for this account, give its OneBot server that one",
}


class AccountResolver:
    """The account of one connection, `peer`. `tasks` are those of the connection's run."""

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
        self._ask = asyncio.Event()  # the account is known, or is to be asked for at once

    async def is_ours(self, event: Event) -> bool:
        """Whether this is an event of the connection's account, which the first one decides."""
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
        """Believe who says whose it is; turn it away if the place is taken, or not for this one."""
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
        """Wait for the first event; a server that sends none is asked, and its header believed
        where it says nothing.

        Where only calls are taken, no event ever comes.
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
        """Let `learn` wait no longer: an event came that names nobody."""
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
        """Tell whoever waits for the account, also where the server greets nobody here, as on
        go-cqhttp's /api.
        """
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
