"""The accounts of the open connections: which connection serves which account, in which role.

Invariant: at most one connection for each account and role; `DuplicatePolicy` chooses between two.
`AccountResolver` finds out the account of a connection, and claims its place in the registry.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
from collections.abc import Awaitable, Callable, Collection, Hashable
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import Final, Protocol

from cachetools import LRUCache
from websockets.frames import CloseCode

from bot.core.errors import NotConnected
from bot.core.events import Connected, Event
from bot.core.ports import EventSink
from frostagent.types.ports import Clock

logger = logging.getLogger(__name__)

LATELY: Final = 300.0  # seconds; servers reconnect after 3 to 30
ANSWERS_WITHIN: Final = 1.5  # seconds; NapCat waits 2 s for its websocket upgrade
TOLD_AGAIN: Final = 3600.0  # seconds
REMEMBERED: Final = 256
INTRODUCED_WITHIN: Final = 1.0  # seconds until the server is asked; most name it at once


class Role(StrEnum):
    """What a connection is used for; `X-Client-Role` names it, in any case."""

    API = "api"
    EVENT = "event"
    UNIVERSAL = "universal"

    @classmethod
    def read(cls, name: str) -> Role:
        """The role of this name; UNIVERSAL if it is missing or unknown."""
        try:
            return cls(name.strip().lower())
        except ValueError:
            return cls.UNIVERSAL


class Peer(Protocol):
    """A connection. `account` is 0 until it is known."""

    @property
    def account(self) -> int: ...

    @property
    def role(self) -> Role: ...

    @property
    def is_open(self) -> bool: ...

    async def send(self, frame: bytes) -> None:
        """Send one text frame. Raises NotConnected if the connection is closed."""
        ...

    async def close(self, reason: str, *, code: CloseCode = CloseCode.NORMAL_CLOSURE) -> None:
        """Never raises."""
        ...

    async def is_alive(self, within: float) -> bool:
        """Whether it answers a ping within `within` seconds. Never raises."""
        ...


class AccountSource(IntEnum):
    """Where an account number comes from; a higher value is trusted over a lower one."""

    NOBODY = 0
    HEADER = 1  # X-Self-ID: onebots sends another number there than in its events
    ANSWER = 2  # get_login_info
    EVENT = 3  # the first one decides: answers go to the account that received the message
    TOKEN = 4  # it belongs to that account only


@dataclass(frozen=True, slots=True)
class Handshake:
    """The facts known when a connection opens. `hint` is the account in its header, or 0.

    `bound` is the account that its token belongs to, or 0. A connection with another token cannot
    serve the `reserved` accounts, which have their own tokens.
    """

    role: Role = Role.UNIVERSAL
    hint: int = 0
    bound: int = 0
    reserved: Collection[int] = ()

    def may_be(self, account: int) -> bool:
        return account == self.bound or account not in self.reserved


class Identity:
    """A connection's account, 0 while unknown. Final once an event or the token has named it."""

    def __init__(self) -> None:
        self.account = 0
        self.source = AccountSource.NOBODY

    @property
    def is_settled(self) -> bool:
        return self.source >= AccountSource.EVENT

    def is_news(self, account: int, source: AccountSource) -> bool:
        """Whether this source is more trusted and names another account."""
        return account > 0 and source > self.source and account != self.account

    def learn(self, account: int, source: AccountSource) -> None:
        """Store the account unless an equally trusted source has named one."""
        if account > 0 and source > self.source:
            self.account, self.source = account, source


class DuplicatePolicy:
    """Decides which of two connections for an account and role stays, and limits logging."""

    def __init__(self) -> None:
        self._challenged: LRUCache[Hashable, float] = LRUCache(REMEMBERED)
        self._told: LRUCache[Hashable, float] = LRUCache(REMEMBERED)

    async def keeps_older(
        self,
        place: Hashable,
        is_alive: Callable[[float], Awaitable[bool]],
        *,
        online: bool | None,
        now: float,
    ) -> bool:
        """Whether the older connection stays: if it was challenged within the last five minutes and
        `is_alive`. `now` is monotonic; `online` is the account's last known state.
        """
        last = self._challenged.get(place, -math.inf)
        self._challenged[place] = now
        if online is False or now - last > LATELY:
            return False
        return await is_alive(ANSWERS_WITHIN)

    def is_news(self, what: Hashable, *, now: float) -> bool:
        """Whether this was not logged within the last hour; calling this counts as logging it."""
        last = self._told.get(what, -math.inf)
        if now - last <= TOLD_AGAIN:
            return False
        self._told[what] = now
        return True


@dataclass(frozen=True, slots=True)
class Account:
    """A connected account. `online` is the state last reported by the server, None if it never
    reported one. `server` is its name and version, empty if unknown.
    """

    self_id: int
    online: bool | None = None
    server: str = ""


class PeerRegistry:
    """The open connections of this process. A connection that does not name its account within
    `introduced_within` seconds is asked for it.
    """

    def __init__(self, *, introduced_within: float = INTRODUCED_WITHIN) -> None:
        self.introduced_within = introduced_within
        self._peers: dict[tuple[int, Role], Peer] = {}  # in order of arrival
        self._speaking: dict[int, Peer] = {}  # which delivered the account's last event
        self._online: dict[int, bool] = {}
        self._servers: dict[int, str] = {}
        self._met: set[tuple[int, Role]] = set()
        self.reconnects = 0  # accounts and roles that connected again
        self.duplicates = DuplicatePolicy()
        self.refused = ""  # the last refused connection and why; cleared by the next that joins

    async def has_place(self, account: int, role: Role, *, now: float) -> bool:
        """Whether a new connection may take this account and role; `now` is monotonic. Pinging an
        older connection takes up to 1.5 s.
        """
        place = (account, role)
        older = self._peers.get(place)
        if older is None or not older.is_open:
            return True
        return not await self.duplicates.keeps_older(
            place, older.is_alive, online=self._online.get(account), now=now
        )

    def join(self, peer: Peer) -> Peer | None:
        """Register a connection with a known account. Returns a replaced one, for closing."""
        key = (peer.account, peer.role)
        self.refused = ""
        self.reconnects += key in self._met
        self._met.add(key)
        replaced = self._peers.pop(key, None)
        self._peers[key] = peer
        return replaced

    def leave(self, peer: Peer) -> None:
        key = (peer.account, peer.role)
        if self._peers.get(key) is not peer:
            return
        del self._peers[key]
        if self._speaking.get(peer.account) is peer:
            del self._speaking[peer.account]
        if not any(account == peer.account for account, _ in self._peers):
            self._online.pop(peer.account, None)
            self._servers.pop(peer.account, None)

    def note_speaking(self, peer: Peer) -> None:
        """This connection delivered an event of its account; only its server knows the ids."""
        if self._peers.get((peer.account, peer.role)) is peer:
            self._speaking[peer.account] = peer

    def caller(self, account: int) -> Peer:
        """Return the open connection for calls: the one that delivered the account's last event,
        else the newest.

        Raises NotConnected.
        """
        speaking = self._speaking.get(account)
        if speaking is not None and speaking.role is not Role.EVENT and speaking.is_open:
            return speaking
        for (self_id, role), peer in reversed(self._peers.items()):
            if self_id == account and role is not Role.EVENT and peer.is_open:
                return peer
        raise NotConnected(f"no OneBot connection of account {account} takes calls")

    def takes_calls(self, account: int) -> bool:
        return any(
            self_id == account and role is not Role.EVENT and peer.is_open
            for (self_id, role), peer in self._peers.items()
        )

    def set_online(self, account: int, *, online: bool) -> bool:
        """Store whether the account is online (unknown: online). Returns whether that changed."""
        news = self._online.get(account, True) is not online
        self._online[account] = online
        return news

    def set_server(self, account: int, server: str) -> None:
        self._servers[account] = server

    def server(self, account: int) -> str:
        """The name and version of the account's server; empty if unknown."""
        return self._servers.get(account, "")

    def accounts(self) -> tuple[Account, ...]:
        """The accounts that can take calls now, in order of connection."""
        open_ones = {
            account: None
            for (account, role), peer in self._peers.items()
            if role is not Role.EVENT and peer.is_open
        }
        return tuple(
            Account(account, self._online.get(account), self._servers.get(account, ""))
            for account in open_ones
        )


_TURNED_AWAY: Final = {
    "is connected already": "account %d dialled again while its connection lives, and is refused:"
    " its OneBot server has two entries for this bot (in NapCat two websocket clients); remove one",
    "needs its own token": "refused a connection for account %d: ONEBOT_ACCESS_TOKEN has a token"
    " for this account, give its OneBot server that one",
}


class AccountResolver:
    """Finds the account of one connection, `peer`, from its token, its header, its events and an
    API call. `tasks` is the task group of its run.
    """

    def __init__(
        self,
        peer: Peer,
        handshake: Handshake,
        *,
        tasks: asyncio.TaskGroup,
        peers: PeerRegistry,
        sink: EventSink,
        clock: Clock,
        ask: Callable[[], Awaitable[int]],
    ) -> None:
        """`ask` asks the server for the account, and returns 0 without an answer."""
        self.identity = Identity()
        self.joined = asyncio.Event()
        self.is_turned_away = False
        self._peer = peer
        self._handshake = handshake
        self._tasks = tasks
        self._peers = peers
        self._sink = sink
        self._clock = clock
        self._ask = ask
        self._claiming = asyncio.Lock()
        self._waited = asyncio.Event()  # the account is known, or must be asked for at once

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
        """Take the account if its source is trusted. Closes the connection if the account is taken
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
        """Wait for the first event; without one, ask the server; without an answer, use the header.
        A connection for calls only never delivers an event.
        """
        role = self._peer.role
        if role is not Role.API:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._peers.introduced_within):
                    await self._waited.wait()
        if self.identity.account == 0 and role is not Role.EVENT:
            await self.claim(await self._ask(), AccountSource.ANSWER)
        await self.claim(self._handshake.hint, AccountSource.HEADER)

    def ask_at_once(self) -> None:
        """Make `resolve` stop waiting: an event without an account has arrived."""
        self._waited.set()

    async def _join(self) -> None:
        account = self.identity.account
        self._waited.set()
        self.joined.set()
        replaced = self._peers.join(self._peer)
        logger.info("account %d is connected (%s)", account, self._peer.role)
        if replaced is not None:
            logger.info("account %d connected once more, its older connection is closed", account)
            self._tasks.create_task(replaced.close("replaced by a newer connection"))
        if self._peers.takes_calls(account):
            await self._say_connected()

    async def _say_connected(self) -> None:
        """Report it even if the server sends no greeting here, as on go-cqhttp's /api."""
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
