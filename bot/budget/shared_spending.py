"""Today's usage if the bots of a cluster share the limits. A bot learns what the others used only a
moment later, so the journal's totals decide about each reservation: reservations are written one
after another, and each sees the sum before it. The other bots receive it only after it is written,
so that no reservation gives way to one that may be written later.
"""

from __future__ import annotations

from bot.budget.limits import ALL, NO_CAP, Amount, DayLimits, LimitLevel, OwnLimits, limit_level
from bot.budget.spending import TURNS, Payer, Reservation, Spending
from bot.core.journal import DayStanding, Found
from bot.core.language import NotifyOwners
from bot.core.lru import LRU
from bot.core.other_bots import Announcer, UsageTaken
from bot.core.query_results import JournalQueries
from frostagent.types.ports import Clock


class SharedSpending(Spending):
    """Implements `DayKeeper`. After a refused request its turn has only its last words left that
    day.
    """

    def __init__(
        self,
        limits: DayLimits,
        *,
        own: OwnLimits,
        book: JournalQueries,
        owners: frozenset[int],
        clock: Clock,
        tell: NotifyOwners,
        announcer: Announcer,
    ) -> None:
        super().__init__(limits, own=own, book=book, owners=owners, clock=clock, tell=tell)
        self._announcer = announcer
        # Each with the end of the day whose limit was used up:
        self._beyond = LRU[tuple[str, int], float](TURNS)  # reservations
        self._refused = LRU[str, float](TURNS)  # turns
        self._untold: dict[tuple[str, int], Reservation] = {}

    @property
    def counts(self) -> tuple[bool, bool]:
        """Whether there is a total limit, and whether people have limits. May be called from a
        thread.
        """
        return self.limits.all != NO_CAP, self.limits.user != NO_CAP or self.own.are_some

    def find(self, found: Found) -> None:
        """Learn the sums before reservations that are being written."""
        end = self.ends()
        for stood in found:
            self._pass_on((stood.turn_id, stood.number))
            if stood.at >= self._begin and self._was_spent(stood):
                self._beyond.keep((stood.turn_id, stood.number), end)

    def refuses(self, turn_id: str, number: int, /) -> bool:
        """Whether the limit was used up when this was reserved; if so, its turn is at SPENT from
        then on.
        """
        end = self.ends()
        if self._beyond.pop((turn_id, number), 0.0) != end:
            return False
        self._refused.keep(turn_id, end)
        return True

    def rung_of(self, turn_id: str) -> LimitLevel:
        """The level of the person who asked for a turn, as far as this bot knows."""
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

    def _end_reservation(self, turn_id: str, number: int) -> Reservation | None:
        self._pass_on((turn_id, number))
        return super()._end_reservation(turn_id, number)

    def _pass_on(self, key: tuple[str, int]) -> None:
        if (pending := self._untold.pop(key, None)) is not None:
            self._tell(pending.payer, pending.amount, pending.at)

    def _tell(self, payer: Payer, amount: Amount, at: float) -> None:
        now = self._clock.now()
        taken = UsageTaken(payer.where, payer.who, amount.tokens, amount.cost, at, now)
        self._announcer.tell(taken)

    def _was_spent(self, stood: DayStanding) -> bool:
        used = (
            self.cap(ALL).used(Amount(*stood.all)),
            self.cap(stood.who).used(Amount(*stood.theirs)),
        )
        return limit_level(*used, is_owner=stood.who in self._owners) >= LimitLevel.SPENT
