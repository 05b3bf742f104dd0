"""Who is connected, as what: the one place that knows which connection speaks for which account.

Invariant: one connection for each account and role; which of two, `rivalry.py` says.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Protocol

from cachetools import LRUCache
from websockets.frames import CloseCode

from bot.domain.errors import NotConnected

LATELY: Final = 300.0  # seconds; servers dial again after 3 to 30
ANSWERS_WITHIN: Final = 1.5  # seconds; NapCat waits 2 for its upgrade, and nobody waits for this
TOLD_AGAIN: Final = 3600.0  # seconds
REMEMBERED: Final = 256


class Pingable(Protocol):
    """A connection that can be asked whether it lives."""

    async def is_alive(self, within: float) -> bool: ...


class DuplicatePolicy:
    """The challenges between connections of this process, and the warnings given of them."""

    def __init__(self) -> None:
        self._challenged: LRUCache[Hashable, float] = LRUCache(REMEMBERED)
        self._told: LRUCache[Hashable, float] = LRUCache(REMEMBERED)

    async def keeps_older(
        self, place: Hashable, older: Pingable, *, online: bool | None, now: float
    ) -> bool:
        """Whether the older connection at that place stays; `now` is monotonic, `online` what it
        said of itself.
        """
        last = self._challenged.get(place, -math.inf)
        self._challenged[place] = now
        if online is False or now - last > LATELY:
            return False
        return await older.is_alive(ANSWERS_WITHIN)

    def is_news(self, what: Hashable, *, now: float) -> bool:
        """Whether this was not told within the last hour; asking counts as telling."""
        last = self._told.get(what, -math.inf)
        if now - last <= TOLD_AGAIN:
            return False
        self._told[what] = now
        return True


INTRODUCED_WITHIN: Final = 1.0  # seconds until we ask who it is; servers that say so do it at once


class Role(StrEnum):
    """The use of a connection; `X-Client-Role` names it in any spelling."""

    API = "api"
    EVENT = "event"
    UNIVERSAL = "universal"

    @classmethod
    def read(cls, name: str) -> Role:
        """The role of that name; universal where it is missing or unknown."""
        try:
            return cls(name.strip().lower())
        except ValueError:
            return cls.UNIVERSAL


class Peer(Protocol):
    """A connection, as the rest of the adapter sees it. `account` is 0 until it is known."""

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
        """Say goodbye; raises nothing."""
        ...

    async def is_alive(self, within: float) -> bool:
        """Whether it answers a ping within so many seconds; raises nothing."""
        ...


@dataclass(frozen=True, slots=True)
class Account:
    """A connected account. `online` is what the server last said of it; None if it never said (it
    need not).

    `server` is the name and version of the server, empty where it does not say.
    """

    self_id: int
    online: bool | None = None
    server: str = ""


class PeerRegistry:
    """The connections of this process. Each is asked whose it is where it does not say so within
    `introduced_within` seconds.
    """

    def __init__(self, *, introduced_within: float = INTRODUCED_WITHIN) -> None:
        self.introduced_within = introduced_within
        self._peers: dict[tuple[int, Role], Peer] = {}  # in order of arrival
        self._speaking: dict[int, Peer] = {}  # by which the account's last event came
        self._online: dict[int, bool] = {}
        self._servers: dict[int, str] = {}
        self._met: set[tuple[int, Role]] = set()
        self.reconnects = 0  # connections of an account and role that had one before
        self.duplicates = DuplicatePolicy()
        self.refused = ""  # who was refused last, and why, until somebody is let in

    async def has_place(self, account: int, role: Role, *, now: float) -> bool:
        """Whether a new connection may have this place; `now` is monotonic. It takes 1.5 s where
        that is disputed.
        """
        place = (account, role)
        older = self._peers.get(place)
        if older is None or not older.is_open:
            return True
        return not await self.duplicates.keeps_older(
            place, older, online=self._online.get(account), now=now
        )

    def join(self, peer: Peer) -> Peer | None:
        """Register a connection whose account is known; the older one it replaces, which is to be
        closed.
        """
        key = (peer.account, peer.role)
        self.refused = ""
        self.reconnects += key in self._met
        self._met.add(key)
        replaced = self._peers.pop(key, None)
        self._peers[key] = peer
        return replaced

    def leave(self, peer: Peer) -> None:
        """Forget a connection; nothing happens if it was never registered, or replaced."""
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
        """Note that an event of its account came by this connection: only its server knows the ids
        in it.
        """
        if self._peers.get((peer.account, peer.role)) is peer:
            self._speaking[peer.account] = peer

    def caller(self, account: int) -> Peer:
        """Of those that are open and take calls: the one by which the account's last event came,
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
        """Whether the account can be asked to do something now."""
        return any(
            self_id == account and role is not Role.EVENT and peer.is_open
            for (self_id, role), peer in self._peers.items()
        )

    def set_online(self, account: int, *, online: bool) -> bool:
        """Note what the server says of the account; whether that is news (an account is taken to be
        online).
        """
        news = self._online.get(account, True) is not online
        self._online[account] = online
        return news

    def set_server(self, account: int, server: str) -> None:
        """Note what the server calls itself."""
        self._servers[account] = server

    def server(self, account: int) -> str:
        """The name and version of the account's server; empty where it has not said them."""
        return self._servers.get(account, "")

    def accounts(self) -> tuple[Account, ...]:
        """The accounts that can be asked to do something now, in order of arrival."""
        open_ones = {
            account: None
            for (account, role), peer in self._peers.items()
            if role is not Role.EVENT and peer.is_open
        }
        return tuple(
            Account(account, self._online.get(account), self._servers.get(account, ""))
            for account in open_ones
        )
