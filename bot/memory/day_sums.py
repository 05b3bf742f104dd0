"""The amounts that people, groups and all took in a day, and how much of their limits those are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from bot.memory.marks import Whose
from bot.memory.own_limits import OwnLimits
from bot.policy.limits import NOTHING, Amount, Cap, DayLimits


class DaySums:
    """Adds up; a share is worked out once for each sum, as long as only the usual limits hold."""

    def __init__(self, limits: DayLimits, own: OwnLimits) -> None:
        self._limits = limits
        self._own = own
        self._sums: dict[Whose, Amount] = {}
        self._shares: dict[Whose, float] = {}  # of the usual limits

    def add(self, keys: Iterable[Whose], amount: Amount) -> None:
        """So much more was taken, or less, by each of these."""
        sums = self._sums
        for key in keys:
            sums[key] = before.plus(amount) if (before := sums.get(key)) else amount
            self._shares.pop(key, None)

    def of(self, key: Whose) -> Amount:
        """The sum of a person, of a group, or of all."""
        return self._sums.get(key, NOTHING)

    def cap(self, key: Whose) -> Cap:
        """The limit of the same."""
        return self._limits.all if isinstance(key, str) else self._own.cap(key, self._limits)

    def shares(self, keys: Iterable[Whose]) -> list[float]:
        """How much of their limits these took; 1 is all of one."""
        if self._own.are_some:  # others than the usual, which may end at any moment
            return list(map(self._share, keys))
        known = self._shares.get
        return [self._share(key) if (share := known(key)) is None else share for key in keys]

    def all_shares(self) -> Mapping[Whose, float]:
        """The same of everybody who took anything."""
        return dict(zip(self._sums, self.shares(self._sums), strict=True))

    def clear(self) -> None:
        """Nothing was taken."""
        self._sums.clear()
        self._shares.clear()

    def _share(self, key: Whose) -> float:
        share = self.cap(key).used(self._sums.get(key, NOTHING))
        if not self._own.are_some:
            self._shares[key] = share
        return share
