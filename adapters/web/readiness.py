"""Whether the bot can answer people now: is an account there, and is it online?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias

Presence: TypeAlias = Literal["online", "offline", "unknown", "missing"]

NOBODY = "no OneBot server is connected"
STOPPING = "stopping"


class ConnectedAccount(Protocol):
    """A connected account; `online` is None where its server never said, `server` what that calls
    itself.
    """

    @property
    def self_id(self) -> int: ...

    @property
    def online(self) -> bool | None: ...

    @property
    def server(self) -> str: ...


@dataclass(frozen=True, slots=True)
class ServedAccount:
    """An account, where it is, and the name and version of its server where that is known."""

    account: int
    state: Presence
    server: str = ""

    @property
    def online(self) -> bool | None:
        """Whether it is online; None where nobody says."""
        return {"online": True, "offline": False}.get(self.state)

    def to_json(self) -> dict[str, Any]:
        """Its row of `/readyz`; ids of accounts are numbers."""
        return {
            "account": self.account,
            "state": self.state,
            "online": self.online,
            "server": self.server,
        }


@dataclass(frozen=True, slots=True)
class Readiness:
    """The answer, the reason where it is no, and every account with where it is."""

    ready: bool
    reason: str
    accounts: tuple[ServedAccount, ...]

    def to_json(self) -> dict[str, Any]:
        """The body of `/readyz`."""
        return {
            "ready": self.ready,
            "reason": self.reason,
            "accounts": [seen.to_json() for seen in self.accounts],
        }


class Attendance:
    """Looks who is there, and remembers whom it has seen: an account that is gone is told as
    missing.

    Ready means that somebody is connected and nobody who is connected is offline; a server need not
    say whether its account is online, so unknown is no reason to the contrary. An account that is
    missing is told, but is no reason as long as another one answers: it may have moved. While
    `stopping` nothing new is answered.
    """

    def __init__(
        self,
        accounts: Callable[[], Iterable[ConnectedAccount]],
        *,
        stopping: Callable[[], bool] | None = None,
        refused: Callable[[], str] | None = None,
        cut_off: Callable[[], str] | None = None,
        ours: Callable[[int], bool] | None = None,
    ) -> None:
        """`ours` are the accounts that are missed when they are gone; `refused` says who was
        refused last, and why; empty where nobody was. So does `cut_off` of what lies behind the
        sockets.
        """
        self._accounts = accounts
        self._stopping = stopping
        self._refused = refused
        self._cut_off = cut_off
        self._ours = ours
        self._seen: dict[int, None] = {}

    def __call__(self) -> Readiness:
        """How it is now."""
        there = {
            account.self_id: ServedAccount(account.self_id, _presence(account), account.server)
            for account in self._accounts()
        }
        self._seen |= dict.fromkeys(there)
        if self._ours is not None:
            self._seen = {account: None for account in self._seen if self._ours(account)}
        accounts = tuple(
            there.get(account) or ServedAccount(account, "missing") for account in self._seen
        )
        if self._stopping and self._stopping():
            return Readiness(ready=False, reason=STOPPING, accounts=accounts)
        if self._cut_off and (why := self._cut_off()):
            return Readiness(ready=False, reason=why, accounts=accounts)
        offline = [account for account, seen in there.items() if seen.state == "offline"]
        return Readiness(bool(there) and not offline, self._reason(offline, there), accounts)

    def _reason(self, offline: list[int], here: Mapping[int, ServedAccount]) -> str:
        if offline:
            return f"{_named(offline)} offline: log in again at the OneBot server"
        if here:
            return ""
        gone = f": {_named(list(self._seen))} missing" if self._seen else ""
        refused = self._refused() if self._refused else ""
        return "; ".join(filter(None, (f"{NOBODY}{gone}", refused)))


def _presence(account: ConnectedAccount) -> Presence:
    match account.online:
        case None:
            return "unknown"
        case online:
            return "online" if online else "offline"


def _named(accounts: list[int]) -> str:
    numbers = ", ".join(map(str, accounts))
    return f"account {numbers} is" if len(accounts) == 1 else f"accounts {numbers} are"
