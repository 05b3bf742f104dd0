"""Which gateway has the connection of which account, from gateways' announcements."""

from __future__ import annotations

from collections import deque
from typing import Final

from msgspec.structs import replace

from adapters.broker.partitions import ClusterPartition, partition_of
from adapters.broker.payloads import AccountPresence, Presence
from bot.core.errors import NotConnected
from frostagent.types.ports import Clock

GONE_AFTER: Final = 3.5  # seconds without an announcement
HELD_UP: Final = 1.0  # seconds in transit after which an announcement is out of date
LAST_WORDS: Final = 3  # announcements used for a clock offset, since one may be delayed
MOST_CLOCKS: Final = 200


class AccountLocations:
    """The accounts of our `share`, by gateway. If two gateways announce an account, it belongs to
    the one it connected to last.
    """

    def __init__(self, *, share: ClusterPartition, clock: Clock) -> None:
        self.share = share
        self._clock = clock
        self._told: dict[str, Presence] = {}
        self._first: dict[str, int | None] = {}  # by gateway: its lowest partition with an account
        self._ahead: dict[str, deque[float]] = {}  # by gateway: seconds our clock is ahead of its
        self._ticks: dict[str, float] = {}  # by gateway: its ticks minus ours, in seconds, at least
        self._heard: dict[str, float] = {}
        self._at: dict[int, str] = {}

    def update(self, presence: Presence) -> tuple[int, ...]:
        """Store a gateway's announcement. Returns the accounts that connected or reconnected. After
        a delayed announcement an account counts as reconnected too: calls with a deadline computed
        from it came too late and were refused.
        """
        name, accounts = presence.gateway, presence.accounts
        presence = replace(
            presence, accounts=tuple(a for a in accounts if self._is_in_share(a.self_id))
        )
        before = {one.self_id: one.times for one in self._accounts_at(name)}
        self._told[name], self._heard[name] = presence, self._clock.monotonic()
        self._first[name] = min((self._partition(a.self_id) for a in accounts), default=None)
        if presence.now:
            ahead = self._ahead.setdefault(name, deque(maxlen=LAST_WORDS))
            ahead.append(self._clock.now() - presence.now)
        more = presence.ticks - self._clock.monotonic()
        known = self._ticks.get(name, more)
        if presence.ticks:  # a delayed announcement is less exact than an earlier one
            self._ticks[name] = max(more, known)
        came = []
        for there in presence.accounts:
            account = there.self_id
            is_back = before.get(account) != there.times or account not in self._at
            if is_back or (more > known + HELD_UP and self._at[account] == name):
                self._at[account] = name
                came.append(account)
        for account in before.keys() - {there.self_id for there in presence.accounts}:
            if self._at.get(account) == name:
                self._move(account)
        return tuple(came)

    def gateway_of(self, account: int) -> str:
        """The gateway for calls to this account. Raises NotConnected."""
        self._tidy()
        name = self._at.get(account)
        if name is None:
            raise NotConnected(f"no gateway has a connection of account {account}")
        return name

    def is_present(self, gateway: str) -> bool:
        """Whether this gateway has announced itself recently."""
        self._tidy()
        return gateway in self._told

    def seconds_since(self, gateway: str, taken: float) -> float:
        """Seconds since `taken`, a time by that gateway's clock, which is assumed to agree with
        ours if unknown.
        """
        return self._clock.now() - taken - min(self._ahead.get(gateway, (0.0,)))

    def deadline(self, gateway: str, seconds: float) -> float:
        """The time in `seconds` from now, in that gateway's ticks; 0 if it announces none."""
        more = self._ticks.get(gateway)
        return 0.0 if more is None else self._clock.monotonic() + seconds + more

    def accounts(self) -> tuple[AccountPresence, ...]:
        """The accounts that can take calls now."""
        self._tidy()
        return tuple(
            there
            for name, presence in self._told.items()
            for there in presence.accounts
            if self._at.get(there.self_id) == name
        )

    @property
    def announcing_partition(self) -> int | None:
        """The partition whose bot sends cluster-wide alerts to owners: the lowest with a connected
        account; None if there is none.
        """
        self._tidy()
        return min((one for one in self._first.values() if one is not None), default=None)

    def server(self, account: int) -> str:
        """The name and version of the account's server; empty if unknown."""
        return next((one.server for one in self.accounts() if one.self_id == account), "")

    def forget(self, gateway: str) -> None:
        """Remove a gateway; its accounts move to another gateway that announces them."""
        self._told.pop(gateway, None)
        self._heard.pop(gateway, None)
        self._first.pop(gateway, None)
        for clocks in (self._ahead, self._ticks):  # events in the broker may outlive their gateway
            if len(clocks) > MOST_CLOCKS:
                del clocks[next(iter(clocks))]
        for account in [one for one, name in self._at.items() if name == gateway]:
            self._move(account)

    def forget_all(self) -> None:
        """Remove all gateways: the connection to the broker is lost."""
        for gateway in tuple(self._told):
            self.forget(gateway)

    @property
    def refused(self) -> str:
        """The last connection refused by a gateway, and why."""
        return next((told.refused for told in self._told.values() if told.refused), "")

    @property
    def reconnects(self) -> int:
        """Number of reconnections at all present gateways."""
        return sum(told.reconnects for told in self._told.values())

    def _partition(self, account: int) -> int:
        return partition_of(account, self.share.partitions)

    def _is_in_share(self, account: int) -> bool:
        return self._partition(account) == self.share.partition

    def _accounts_at(self, gateway: str) -> tuple[AccountPresence, ...]:
        told = self._told.get(gateway)
        return told.accounts if told else ()

    def _move(self, account: int) -> None:
        """Move an account to another gateway that announces it, if any."""
        del self._at[account]
        for name in self._told:
            if any(there.self_id == account for there in self._accounts_at(name)):
                self._at[account] = name

    def _tidy(self) -> None:
        late = self._clock.monotonic() - GONE_AFTER
        for name in [name for name, heard in self._heard.items() if heard < late]:
            self.forget(name)
