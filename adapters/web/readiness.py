"""Whether the bot can answer people now: is an account there, and is it online?"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias

Presence: TypeAlias = Literal["online", "offline", "missing"]

NOBODY = "no OneBot server is connected"


class Account(Protocol):
    """A connected account; `online` is None where its server never said."""

    @property
    def self_id(self) -> int: ...

    @property
    def online(self) -> bool | None: ...


@dataclass(frozen=True, slots=True)
class Readiness:
    """The answer, the reason where it is no, and every account with where it is."""

    ready: bool
    reason: str
    accounts: tuple[tuple[int, Presence], ...]

    def to_json(self) -> dict[str, Any]:
        """What `/readyz` says; ids of accounts are numbers."""
        accounts = [{"account": account, "state": state} for account, state in self.accounts]
        return {"ready": self.ready, "reason": self.reason, "accounts": accounts}


class Attendance:
    """Looks who is there, and remembers whom it has seen: an account that is gone is told as missing.

    Ready means that somebody is connected and nobody who is connected is offline. An account that is missing is told,
    but is no reason as long as another one answers: it may have moved.
    """

    def __init__(self, accounts: Callable[[], Iterable[Account]]) -> None:
        self._accounts = accounts
        self._seen: dict[int, None] = {}

    def __call__(self) -> Readiness:
        """How it is now."""
        here: dict[int, Presence] = {
            account.self_id: "offline" if account.online is False else "online" for account in self._accounts()
        }
        self._seen |= dict.fromkeys(here)
        accounts = tuple((account, here.get(account, "missing")) for account in self._seen)
        offline = [account for account, state in here.items() if state == "offline"]
        return Readiness(bool(here) and not offline, _reason(offline, here, self._seen), accounts)


def _reason(offline: list[int], here: Iterable[int], seen: Iterable[int]) -> str:
    if offline:
        return f"{_named(offline)} offline: log in again at the OneBot server"
    if any(True for _ in here):
        return ""
    gone = list(seen)
    return f"{NOBODY}: {_named(gone)} missing" if gone else NOBODY


def _named(accounts: list[int]) -> str:
    numbers = ", ".join(map(str, accounts))
    return f"account {numbers} is" if len(accounts) == 1 else f"accounts {numbers} are"
