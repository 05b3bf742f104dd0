"""Whether the bot can answer people now: an account is connected and online."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias

Presence: TypeAlias = Literal["online", "offline", "unknown", "missing"]

NOBODY = "no OneBot server is connected"
STOPPING = "stopping"


class ConnectedAccount(Protocol):
    """A connected account; `online` is None if its server never reported it, `server` is the
    server's own name.
    """

    @property
    def self_id(self) -> int: ...

    @property
    def online(self) -> bool | None: ...

    @property
    def server(self) -> str: ...


@dataclass(frozen=True, slots=True)
class ServedAccount:
    """An account with its state, and the name and version of its server, if known."""

    account: int
    state: Presence
    server: str = ""

    @property
    def online(self) -> bool | None:
        """Whether it is online; None if unknown."""
        return {"online": True, "offline": False}.get(self.state)

    def to_json(self) -> dict[str, Any]:
        """A row of `/readyz`; account ids are numbers."""
        return {
            "account": self.account,
            "state": self.state,
            "online": self.online,
            "server": self.server,
        }


@dataclass(frozen=True, slots=True)
class Readiness:
    """The answer, the reason if it is no, and every account."""

    ready: bool
    reason: str
    accounts: tuple[ServedAccount, ...]

    def to_json(self) -> dict[str, Any]:
        return {
            "ready": self.ready,
            "reason": self.reason,
            "accounts": [seen.to_json() for seen in self.accounts],
        }


class Attendance:
    """Checks the connected accounts, and remembers those seen: an account that is gone is reported
    as missing.

    Ready means that an account is connected and no connected account is offline. Servers need not
    report whether an account is online, so unknown does not count as offline. A missing account is
    reported, but does not matter as long as another one answers: it may have moved. Not ready while
    `stopping`.
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
        """`ours` tells which accounts are reported as missing when they are gone. `refused` returns
        the last refused connection and why, or an empty string; `cut_off` returns why the process
        behind the sockets cannot be reached.
        """
        self._accounts = accounts
        self._stopping = stopping
        self._refused = refused
        self._cut_off = cut_off
        self._ours = ours
        self._seen: dict[int, None] = {}

    def __call__(self) -> Readiness:
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
