"""Spending today where several bots of a cluster share its limits: what the others take is heard of
a moment later, so each reservation is judged by the journal's totals, in which it has its place
behind those of the others. They hear of it once it stands there: nobody gives way to what may yet
be behind him.
"""

from __future__ import annotations

from typing import Any

from bot.core.journal import DayStanding, Found
from bot.core.other_bots import UsageTaken
from bot.memory.lru import LRU
from bot.memory.spending import ALL, TURNS, Payer, Reservation, Spending
from bot.policy.day_limits import NO_CAP, Amount, DayLimits, LimitLevel, limit_level


class SharedSpending(Spending):
    """Fits `DayKeeper`. A turn whose request is refused has only its last words left that day."""

    def __init__(self, limits: DayLimits, **parts: Any) -> None:
        super().__init__(limits, **parts)
        # Each with the end of the day that was spent:
        self._beyond = LRU[tuple[str, int], float](TURNS)  # reservations
        self._refused = LRU[str, float](TURNS)  # turns
        self._untold: dict[tuple[str, int], Reservation] = {}

    @property
    def counts(self) -> tuple[bool, bool]:
        """Whether all together have a limit, and whether people have any; asked in a thread."""
        return self.limits.all != NO_CAP, self.limits.user != NO_CAP or self.own.are_some

    def find(self, found: Found) -> None:
        """Hear how the day stood before reservations that are written down now."""
        end = self.ends()
        for stood in found:
            self._pass_on((stood.turn_id, stood.number))
            if stood.at >= self._begin and self._was_spent(stood):
                self._beyond.keep((stood.turn_id, stood.number), end)

    def refuses(self, turn_id: str, number: int) -> bool:
        """Whether nothing was left when this was reserved: the turn learns so."""
        end = self.ends()
        if self._beyond.pop((turn_id, number), 0.0) != end:
            return False
        self._refused.keep(turn_id, end)
        return True

    def rung_of(self, turn_id: str) -> LimitLevel:
        """How much of the limits is used of whoever a turn is for, as far as anybody knows."""
        if self._refused.get(turn_id) == self.ends():
            return LimitLevel.SPENT
        return super().rung_of(turn_id)

    def _reserve(self, key: tuple[str, int], pending: Reservation) -> None:
        if not any(self.counts):
            super()._reserve(key, pending)
            return
        self._pending[key] = self._untold[key] = pending
        super()._take(pending.payer, pending.amount, pending.at)

    def _take(
        self, payer: Payer, amount: Amount, at: float, ends: Reservation | None = None
    ) -> None:
        super()._take(payer, amount, at, ends)
        self._tell(payer, amount, at)

    def _settled(self, turn_id: str, number: int) -> Reservation | None:
        self._pass_on((turn_id, number))
        return super()._settled(turn_id, number)

    def _pass_on(self, key: tuple[str, int]) -> None:
        if (pending := self._untold.pop(key, None)) is not None:
            self._tell(pending.payer, pending.amount, pending.at)

    def _tell(self, payer: Payer, amount: Amount, at: float) -> None:
        if self.neighbours is not None:
            now = self._clock.now()
            taken = UsageTaken(payer.where, payer.who, amount.tokens, amount.cost, at, now)
            self.neighbours.tell(taken)

    def _was_spent(self, stood: DayStanding) -> bool:
        used = (
            self.cap(ALL).used(Amount(*stood.all)),
            self.cap(stood.who).used(Amount(*stood.theirs)),
        )
        return limit_level(*used, is_owner=stood.who in self._owners) >= LimitLevel.SPENT
