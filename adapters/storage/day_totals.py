"""What all workers of a cluster used today, in total and per person, for the limits they share. (A
group belongs to one account and so to one worker, which knows its sum.)

Invariant: a total is the sum of the day's rows in `usage`. The transaction that writes or deletes
such rows changes the totals by the same amounts. A worker that begins to count, at midnight or when
a limit is set, sums up all existing rows, including those from before there was a limit. A changed
total is locked until the commit, so reservations of all workers are serialized, and each learns the
total before it. Totals are locked in the order of their keys, so transactions never deadlock.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from sqlalchemy import Connection

from adapters.storage.batches import Put, Transactions
from adapters.storage.database import Database
from adapters.storage.statements import Statement
from bot.core.calendar_days import midnight
from bot.core.journal import DayKeeper, DayStanding, Found

ALL = 0

SIGNS = {Statement.ADD_USAGE: 1, Statement.DROP_RESERVED: -1}

OF_ROWS = " RETURNING turn_id, reserved, asker, at, prompt + completion, coalesce(cost, 0)"

# Waits for others: a total that one of them is adding would conflict with ours.
OPEN = (
    "LOCK TABLE day_totals IN SHARE ROW EXCLUSIVE MODE",
    """
    DELETE FROM day_totals
    WHERE day = %(begin)s AND CASE WHEN who = 0 THEN %(all)s ELSE %(people)s END
    """,
    """
    INSERT INTO day_totals (day, who, tokens, cost)
    SELECT %(begin)s, who, sum(prompt + completion), sum(coalesce(cost, 0))
    FROM usage,
        LATERAL (VALUES (0, %(all)s), (asker, %(people)s AND asker <> 0)) AS key (who, counts)
    WHERE at >= %(begin)s AND at < %(end)s AND counts GROUP BY who
    """,
)
CHANGE = """
    INSERT INTO day_totals (day, who, tokens, cost)
    SELECT %s, who, tokens, cost
    FROM unnest(%s::bigint[], %s::bigint[], %s::float8[]) AS more (who, tokens, cost) ORDER BY who
    ON CONFLICT (day, who) DO UPDATE
    SET tokens = day_totals.tokens + excluded.tokens, cost = day_totals.cost + excluded.cost
    RETURNING who, tokens, cost
"""


class _Day(NamedTuple):
    """A day, and whether the total and people are counted."""

    begin: float
    end: float
    all: bool
    people: bool


class _Change(NamedTuple):
    """A row of usage that was written (`sign` 1) or deleted (-1)."""

    sign: int
    turn_id: str
    reserved: int
    who: int
    at: float
    tokens: int
    cost: float


class CountingTransactions(Transactions):
    """A worker's transactions. `tell` receives totals found by reservations, once committed."""

    def __init__(
        self,
        database: Database,
        *,
        keeper: DayKeeper,
        now: Callable[[], float],
        tell: Callable[[Found], None],
    ) -> None:
        super().__init__(database)
        self._keeper = keeper
        self._now = now
        self._tell = tell
        self._opened: _Day | None = None
        # of the transaction under way
        self._day: _Day | None = None
        self._changes: list[_Change] = []
        self._found: Found = ()

    def write(self, connection: Connection, batch: Sequence[Put]) -> None:
        """Write all of these entries or none, and count them. Raises the driver's errors."""
        self._day, self._changes, self._found = self._today(), [], ()
        if self._day is None:  # writes are not counted from now on
            self._opened = None
        try:
            super().write(connection, batch)
        except BaseException:
            self._opened = None
            raise
        self._tell_found()

    def written_after_all(self, connection: Connection) -> int:
        """Like the base method; also reports the totals found by reservations that were written."""
        if done := super().written_after_all(connection):
            self._tell_found()
        return done

    def _tell_found(self) -> None:
        found, self._found = self._found, ()
        if found:
            self._tell(found)

    def _today(self) -> _Day | None:
        """The day being counted; None if there is no limit."""
        all_, people = self._keeper.counts
        if not (all_ or people):
            return None
        now = self._now()
        return _Day(midnight(now), midnight(now, later=1), all_, people)

    def _execute(self, cursor: Any, statement: Statement, values: list[Any]) -> None:
        day, sign = self._day, SIGNS.get(statement)
        if day is None or sign is None:
            super()._execute(cursor, statement, values)
            return
        if day != self._opened:
            for sql in OPEN:
                cursor.execute(sql, day._asdict())
            self._opened = day
        cursor.executemany(self._statements[statement].sql + OF_ROWS, values, returning=True)
        is_more = True
        while is_more:
            self._changes += (_Change(sign, *row) for row in cursor.fetchall())
            is_more = cursor.nextset()

    def _seal(self, cursor: Any) -> str:
        number = super()._seal(cursor)
        if self._day is not None and self._changes:
            self._found = self._counted(cursor, self._day)
        return number

    def _counted(self, cursor: Any, day: _Day) -> Found:
        """Update the totals. Returns those that each reservation found."""
        changes = [one for one in self._changes if day.begin <= one.at < day.end]
        more: dict[int, tuple[int, float]] = {}
        for one in changes:
            _add(more, one, day)
        if not more:
            return ()
        keys = list(more)
        columns = ([more[key][place] for key in keys] for place in (0, 1))
        cursor.execute(CHANGE, (day.begin, keys, *columns))
        totals = {who: (tokens, cost) for who, tokens, cost in cursor.fetchall()}
        found = []
        for one in reversed(changes):
            _add(totals, one._replace(sign=-one.sign), day)
            if one.sign > 0 and one.reserved:
                stood = (
                    totals.get(ALL, (0, 0.0)),
                    totals.get(one.who, (0, 0.0)) if one.who else (0, 0.0),
                )
                found.append(DayStanding(one.turn_id, one.reserved, one.who, one.at, *stood))
        return tuple(found)


def counting(keeper: DayKeeper, now: Callable[[], float]) -> Callable[[Database], Transactions]:
    """Return a factory of transactions that report to the keeper in this event loop, before the
    caller that waits for a reservation to be durable continues.
    """
    loop = asyncio.get_running_loop()

    def tell(found: Found) -> None:  # called in the writing thread
        loop.call_soon_threadsafe(keeper.find, found)

    return partial(CountingTransactions, keeper=keeper, now=now, tell=tell)


def _add(sums: dict[int, tuple[int, float]], one: _Change, day: _Day) -> None:
    """Add a change to each sum that it belongs to."""
    for key, counts in ((ALL, day.all), (one.who, day.people and one.who)):
        if counts:
            tokens, cost = sums.get(key, (0, 0.0))
            sums[key] = tokens + one.sign * one.tokens, cost + one.sign * one.cost
