"""The registry of open connections: which one serves which account, in which role.

Invariant: at most one connection for each account and role; `DuplicatePolicy` chooses between two.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Protocol

from cachetools import LRUCache
from websockets.frames import CloseCode

from bot.core.errors import NotConnected

LATELY: Final = 300.0  # seconds; servers dial again after 3 to 30
ANSWERS_WITHIN: Final = 1.5  # seconds; NapCat waits 2 s for its websocket upgrade
TOLD_AGAIN: Final = 3600.0  # seconds
REMEMBERED: Final = 256
INTRODUCED_WITHIN: Final = 1.0  # seconds until we ask who it is; servers that say so do it at once


class Role(StrEnum):
    """What a connection is used for; `X-Client-Role` names it, in any case."""

    API = "api"
    EVENT = "event"
    UNIVERSAL = "universal"

    @classmethod
    def read(cls, name: str) -> Role:
        """The role of that name; universal if it is missing or unknown."""
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
        """Put one text frame on the wire. Raises NotConnected if it is closed already."""
        ...

    async def close(self, reason: str, *, code: CloseCode = CloseCode.NORMAL_CLOSURE) -> None:
        """Close the socket. Never raises."""
        ...

    async def is_alive(self, within: float) -> bool:
        """Whether it answers a ping within this many seconds. Never raises."""
        ...


class DuplicatePolicy:
    """Decides which of two connections for one account and role stays, and limits how often each
    conflict is logged.
    """

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
        `is_alive` within so many seconds. `now` is monotonic; `online` is the account's last known
        state.
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
    """A connected account. `online` is the state that the server reported last; None if it never
    did (servers need not). `server` is its name and version, empty if unknown.
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
        self._speaking: dict[int, Peer] = {}  # that delivered the account's last event
        self._online: dict[int, bool] = {}
        self._servers: dict[int, str] = {}
        self._met: set[tuple[int, Role]] = set()
        self.reconnects = 0  # connections of an account and role that had one before
        self.duplicates = DuplicatePolicy()
        self.refused = ""  # the last refused connection and why; cleared by the next that joins

    async def has_place(self, account: int, role: Role, *, now: float) -> bool:
        """Whether a new connection may take this account and role; `now` is monotonic. Takes up to
        1.5 s if an older connection has to be pinged.
        """
        place = (account, role)
        older = self._peers.get(place)
        if older is None or not older.is_open:
            return True
        return not await self.duplicates.keeps_older(
            place, older.is_alive, online=self._online.get(account), now=now
        )

    def join(self, peer: Peer) -> Peer | None:
        """Register a connection whose account is known. Returns the older one it replaces, which
        the caller closes.
        """
        key = (peer.account, peer.role)
        self.refused = ""
        self.reconnects += key in self._met
        self._met.add(key)
        replaced = self._peers.pop(key, None)
        self._peers[key] = peer
        return replaced

    def leave(self, peer: Peer) -> None:
        """Remove a connection; does nothing if it was never registered, or was replaced."""
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
        """Note that this connection delivered an event of its account: only its server knows the
        ids in that event.
        """
        if self._peers.get((peer.account, peer.role)) is peer:
            self._speaking[peer.account] = peer

    def caller(self, account: int) -> Peer:
        """The open connection for calls: the one that delivered the account's last event, else the
        newest.

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
        """Whether a call to the account can be made now."""
        return any(
            self_id == account and role is not Role.EVENT and peer.is_open
            for (self_id, role), peer in self._peers.items()
        )

    def set_online(self, account: int, *, online: bool) -> bool:
        """Store whether the account is online. Returns whether that changed; an unknown account
        counts as online.
        """
        news = self._online.get(account, True) is not online
        self._online[account] = online
        return news

    def set_server(self, account: int, server: str) -> None:
        self._servers[account] = server

    def server(self, account: int) -> str:
        """The name and version of the account's server; empty if unknown."""
        return self._servers.get(account, "")

    def accounts(self) -> tuple[Account, ...]:
        """The accounts that can take calls now, in order of arrival."""
        open_ones = {
            account: None
            for (account, role), peer in self._peers.items()
            if role is not Role.EVENT and peer.is_open
        }
        return tuple(
            Account(account, self._online.get(account), self._servers.get(account, ""))
            for account in open_ones
        )
