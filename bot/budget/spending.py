"""Today's usage: per person, per group and in total.

Invariant: a sum equals the journal's rows of today, or exceeds them while a row is uncertain. The
rows are read once at the start; from then on `Spending` observes the journal and counts each entry
about a request as it is written, including reservations of requests under way.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping
from typing import Final, TypeAlias

from msgspec import Struct, field
from msgspec.structs import force_setattr, replace

from bot.budget.limit_alerts import LimitAlerts
from bot.budget.limits import (
    ALL,
    NOTHING,
    Amount,
    Cap,
    DayLimits,
    LimitLevel,
    OwnLimits,
    Whose,
    limit_level,
)
from bot.core.calendar_days import midnight
from bot.core.conversation import Conversation
from bot.core.journal import Entry, TurnOpened, UsageAdded, UsageReleased, UsageReserved
from bot.core.language import NotifyOwners
from bot.core.lru import LRU
from bot.core.other_bots import UsageTaken
from bot.core.query_results import JournalQueries, SpentSum
from frostagent.types.messages import Usage
from frostagent.types.ports import Clock
from frostagent.types.runs import StepFinished

LATE: Final = 1.0  # seconds after which the usage of a note is in the journal
TURNS: Final = 5000  # whose payers are remembered
SET_BACK: Final = 3600.0  # seconds a clock may go back without starting a new day

COUNTED: Final = frozenset({TurnOpened, StepFinished, UsageAdded, UsageReserved, UsageReleased})

EarlyPayer: TypeAlias = tuple[Conversation, int] | None
"""The payer of a request whose turn is not open yet."""


class Payer(Struct, frozen=True):
    """The conversation of a turn, and the person who asked (0: none). `keys` are the sums that its
    requests count towards.
    """

    where: Conversation | None = None
    who: int = 0
    keys: tuple[Whose, ...] = ()

    def __post_init__(self) -> None:
        group = (self.where,) if self.where is not None and self.where.is_group else ()
        force_setattr(self, "keys", (ALL, *group, self.who) if self.who else (ALL, *group))


NOBODY: Final = Payer()


class Reservation(Struct, frozen=True):
    payer: Payer
    amount: Amount
    at: float


class ReadRows(Struct, frozen=True):
    """The journal's rows at some moment from `since` to `by`."""

    since: float
    by: float = math.inf

    def lacking(self, note: UsageTaken) -> Amount:
        """The part of another bot's note that these rows lack. It is negative only if they cannot
        contain the note yet.
        """
        if note.told < self.since - LATE:
            return NOTHING
        amount = Amount(note.tokens, note.cost)
        return amount if note.told >= self.by else amount.at_least_zero


class Rereading(Struct, frozen=True):
    """Rows that are being read, the reservations made `before`, and the amounts taken meanwhile."""

    rows: ReadRows
    before: frozenset[Hashable]
    taken: list[tuple[tuple[Whose, ...], Amount]] = field(default_factory=list)

    def take(self, keys: tuple[Whose, ...], amount: Amount, ends: Hashable) -> None:
        """Record an amount, which may settle a reservation (`ends`). The rows being read may
        already show the end of an earlier one: in doubt it is not subtracted, since subtracting
        twice would be worse.
        """
        self.taken.append((keys, amount.at_least_zero if ends in self.before else amount))

    def hear(self, keys: tuple[Whose, ...], note: UsageTaken) -> None:
        self.taken.append((keys, self.rows.lacking(note)))


class DaySums:
    """The sums of a day, and the share of its limit that each uses. Shares are cached while only
    the usual limits apply: any other limit may end at any moment.
    """

    def __init__(self, limits: DayLimits, own: OwnLimits) -> None:
        self._limits = limits
        self._own = own
        self._sums: dict[Whose, Amount] = {}
        self._shares: dict[Whose, float] = {}  # of the usual limits

    def add(self, keys: Iterable[Whose], amount: Amount) -> None:
        """Add an amount, which may be negative, to each sum."""
        sums = self._sums
        for key in keys:
            sums[key] = before.plus(amount) if (before := sums.get(key)) else amount
            self._shares.pop(key, None)

    def of(self, key: Whose) -> Amount:
        return self._sums.get(key, NOTHING)

    def cap(self, key: Whose) -> Cap:
        return self._limits.all if isinstance(key, str) else self._own.cap(key, self._limits)

    def shares(self, keys: Iterable[Whose]) -> list[float]:
        """The share of its limit that each key uses; 1 is all of it."""
        if self._own.are_some:
            return list(map(self._share, keys))
        known = self._shares.get
        return [self._share(key) if (share := known(key)) is None else share for key in keys]

    def all_shares(self) -> Mapping[Whose, float]:
        return dict(zip(self._sums, self.shares(self._sums), strict=True))

    def clear(self) -> None:
        self._sums.clear()
        self._shares.clear()

    def _share(self, key: Whose) -> float:
        share = self.cap(key).used(self._sums.get(key, NOTHING))
        if not self._own.are_some:
            self._shares[key] = share
        return share


class Spending:
    """Counts the usage in journal entries (a `JournalObserver`), and reports how much of the limits
    is used. `tell` notifies the `owners`. `has_limits` is True if any limit is set. It is computed
    when a limit changes, since a message reads it ten times.
    """

    sees: Final = COUNTED

    def __init__(
        self,
        limits: DayLimits,
        *,
        own: OwnLimits,
        book: JournalQueries,
        owners: frozenset[int],
        clock: Clock,
        tell: NotifyOwners,
    ) -> None:
        self.alerts = LimitAlerts(tell, owners, now=clock.now)
        self.limits = limits
        self.own = own
        self._book = book
        self._owners = owners
        self._clock = clock
        self._rows = ReadRows(clock.now())  # the sums are these rows and all entries since
        self._payers = LRU[str, Payer](TURNS)
        self._pending: dict[tuple[str, int], Reservation] = {}
        self._sums = DaySums(limits, own)
        self.cap = self._sums.cap
        self._reading: Rereading | None = None
        self._begin = self._end = 0.0
        self._is_read = self._is_behind = False
        self.has_limits = False
        own.follow(self._limits_changed)
        self._limits_changed()

    async def load(self) -> bool:
        """Read what earlier processes used today. Returns False if it cannot be read now."""
        if self._is_read:
            return True
        if not await self.own.load():
            return False
        self._turn_over()
        begin = self._begin
        rows = await self._book.taken(since=begin, until=self._rows.since)
        payers = await self._book.latest_payers(latest=TURNS)
        if rows is None or payers is None or begin != self._begin:
            return False
        earlier = [(turn_id, Payer(where, who)) for turn_id, where, who in reversed(payers)]
        for turn_id, payer in (*earlier, *self._payers.items()):  # the newest are dropped last
            self._payers.keep(turn_id, payer)
        self._read(rows, self._rows)
        self._is_read = True
        if self._is_behind:
            await self.reread()
        return True

    async def reread(self) -> None:
        """Read all rows again, after `load` at the earliest: notes of other bots may have been
        lost.
        """
        if not self._is_read:
            self._is_behind = True
            return
        self._turn_over()
        begin, since = self._begin, ReadRows(self._clock.now())
        reading = self._reading = Rereading(since, frozenset(self._pending.values()))
        rows = await self._book.taken(since=begin, until=math.inf)
        self._reading = None
        if rows is not None and begin == self._begin:
            self._sums.clear()
            for keys, amount in reading.taken:
                self._sums.add(keys, amount)
            self._read(rows, since)

    def hear(self, note: UsageTaken) -> None:
        """Count what another bot used, unless the rows already contained it."""
        self._turn_over()
        if note.at >= self._begin:
            payer = Payer(note.where, note.who)
            if self._reading is not None:
                self._reading.hear(payer.keys, note)
            self._sums.add(payer.keys, self._rows.lacking(note))
            self.alerts.acknowledge(self._settled_shares(payer.keys))

    def see(self, entry: Entry) -> None:
        if type(entry) not in COUNTED:
            return  # most entries
        match entry:
            case TurnOpened(turn_id=turn_id, question=question, uncalled=uncalled):
                who = 0 if uncalled else question.sender.user_id
                self._payers.keep(turn_id, Payer(question.conversation, who))
            case StepFinished(run_id=turn_id, completion=completion) if completion.usage:
                self._count(turn_id, completion.usage, self._clock.now())
            case UsageAdded(turn_id=turn_id, usage=usage, at=at, payer=early):
                self._count(turn_id, usage, at, early)
            case UsageReserved(turn_id=turn_id, number=number, usage=usage, at=at, payer=early):
                self._turn_over()
                payer = Payer(*early) if early else self._payers.get(turn_id, NOBODY)
                self._reserve((turn_id, number), Reservation(payer, amount_of(usage), at))
            case UsageReleased(turn_id=turn_id, number=number):
                if (pending := self._end_reservation(turn_id, number)) is not None:
                    self._take(pending.payer, NOTHING.less(pending.amount), pending.at, pending)
            case _:
                pass

    def rung(self, where: Conversation, who: int) -> LimitLevel:
        """The level that a person there has reached, or the group alone if `who` is 0. Until the
        rows are read it is at least BARE, except for owners.
        """
        return self._rung(Payer(where, who)) if self.has_limits else LimitLevel.ALL

    def rung_of(self, turn_id: str) -> LimitLevel:
        """The level of the person who asked for a turn; by the total limit alone if they are
        unknown.
        """
        if not self.has_limits:
            return LimitLevel.ALL
        return self._rung(self._payers.get(turn_id, NOBODY))

    def is_spent(self, turn_id: str) -> bool:
        """Whether the person who asked for a turn has used up a limit today."""
        return self.rung_of(turn_id) >= LimitLevel.SPENT

    def refuses(self, _turn_id: str, _number: int, /) -> bool:
        """Whether the limit was used up when this reservation was written: never, unless bots share
        limits.
        """
        return False

    def taken(self, key: Whose) -> Amount:
        self._turn_over()
        return self._sums.of(key)

    @property
    def is_known(self) -> bool:
        """Whether the sums include what earlier processes used today."""
        return self._is_read

    @property
    def reserved(self) -> Amount:
        """Today's reservations of requests under way, which `taken` includes."""
        self._turn_over()
        pending = [one.amount for one in self._pending.values() if one.at >= self._begin]
        return Amount(sum(one.tokens for one in pending), sum(one.cost for one in pending))

    def ends(self) -> float:
        """The end of the day, in seconds since 1970."""
        self._turn_over()
        return self._end

    def _count(self, turn_id: str, usage: Usage, at: float, early: EarlyPayer = None) -> None:
        self._turn_over()
        payer = Payer(*early) if early else self._payers.get(turn_id, NOBODY)
        amount = amount_of(usage) if at >= self._begin else NOTHING
        if (pending := self._end_reservation(turn_id, usage.reserved)) is not None:
            if pending.payer is payer:  # both at once
                amount = amount.less(pending.amount)
            else:
                self._take(pending.payer, NOTHING.less(pending.amount), pending.at, pending)
        if amount is NOTHING:
            return
        self._take(payer, amount, at, pending)
        if self.has_limits:
            for key, share in zip(payer.keys, self._sums.shares(payer.keys), strict=True):
                self.alerts.record(key, share, self._sums.of(key))

    def _reserve(self, key: tuple[str, int], pending: Reservation) -> None:
        self._pending[key] = pending
        self._take(pending.payer, pending.amount, pending.at)

    def _end_reservation(self, turn_id: str, number: int) -> Reservation | None:
        """The reservation of today that this ends, if any."""
        pending = self._pending.pop((turn_id, number), None) if number else None
        return pending if pending is not None and pending.at >= self._begin else None

    def _read(self, rows: Iterable[SpentSum], since: ReadRows) -> None:
        self._rows = replace(since, by=self._clock.now())
        for row in rows:
            self._sums.add(Payer(row.where, row.who).keys, Amount(row.tokens, row.cost))
        self.alerts.acknowledge(self._sums.all_shares())

    def _take(
        self, payer: Payer, amount: Amount, _at: float, ends: Reservation | None = None
    ) -> None:
        self._sums.add(payer.keys, amount)
        if self._reading is not None:
            self._reading.take(payer.keys, amount, ends)

    def _rung(self, payer: Payer) -> LimitLevel:
        self._turn_over()
        is_owner = payer.who in self._owners
        known = limit_level(*self._sums.shares(payer.keys), is_owner=is_owner)
        return known if self._is_read or is_owner else max(known, LimitLevel.BARE)

    def _turn_over(self) -> None:
        now = self._clock.now()
        if self._begin - SET_BACK <= now < self._end:
            return  # a clock set back after midnight does not start the day a second time
        self._begin, self._end = midnight(now), midnight(now, later=1)
        self._sums.clear()
        self.alerts.clear()

    def _settled_shares(self, keys: Iterable[Whose]) -> dict[Whose, float]:
        """The shares without this bot's own reservations: if a reservation passes a threshold, this
        bot alone reports it, when the reservation is settled.
        """
        left = {key: self._sums.of(key) for key in keys}
        for one in self._pending.values():
            for key in left.keys() & one.payer.keys if one.at >= self._begin else ():
                left[key] = left[key].less(one.amount)
        return {key: self.cap(key).used(amount) for key, amount in left.items()}

    def _limits_changed(self) -> None:
        self.has_limits = not self.limits.are_off or self.own.are_some


def amount_of(usage: Usage) -> Amount:
    """The amount of a request; if its price is unknown, only its tokens count."""
    return Amount(usage.prompt + usage.completion, usage.cost or 0.0)
