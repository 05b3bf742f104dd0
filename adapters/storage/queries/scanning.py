"""Finds rows by time without counting, and reads them: a row that cannot be read (written by a
later version) is skipped and logged.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any, TypeVar

from sqlalchemy import (
    CTE,
    Column,
    ColumnElement,
    Connection,
    FromClause,
    Table,
    TextClause,
    func,
    select,
    text,
)

from adapters.storage.tables import PAYER, turns, usage
from bot.core import codec

PLACES = 16  # ids probed per query


SLACK = 3600.0  # seconds that a row may be written after later ones


T = TypeVar("T")


logger = logging.getLogger(__name__)


def readable(read: Callable[[Any], T], rows: Iterable[Any]) -> Iterator[T]:
    """Yield the readable rows."""
    for row in rows:
        try:
            yield read(row)
        except codec.Unreadable as error:
            logger.warning("a row of the journal cannot be read, and is left out: %s", error)


def conversation_names(table: Table) -> CTE:
    """A CTE of the table's conversations as `name`, ending with None.

    It steps through the index, however many rows each has; DISTINCT or GROUP BY would scan all
    rows.
    """
    names = select(func.min(table.c.conversation).label("name")).cte("names", recursive=True)
    after = (
        select(func.min(table.c.conversation))
        .where(table.c.conversation > names.c.name)
        .scalar_subquery()
    )
    return names.union_all(select(after).where(names.c.name.is_not(None)))


def ids(connection: Connection, table: FromClause) -> tuple[int, int]:
    """The first id, and the last plus one. For both at once SQLite scans all rows."""
    first = connection.scalar(select(func.min(table.c.id)))
    last = connection.scalar(select(func.max(table.c.id)))
    return int(first or 1), int(last or 0) + 1


def id_at(connection: Connection, column: Column[Any], moment: float) -> int:
    """The id from which on the times of this column are about at or after that moment.

    A query probes several ids, so that a remote database is asked five times, not twenty.
    """
    low, high = ids(connection, column.table)
    while low < high:
        step = -(-(high - low) // PLACES)
        places = [min(low + number * step, high - 1) for number in range(PLACES)]
        named = {f"id{number}": place for number, place in enumerate(places)}
        times = connection.execute(_times_at(column), named).one()
        for place, time in zip(places, times, strict=True):
            if time is None or time >= moment:
                high = place
                break
            low = place + 1
    return low


@cache
def _times_at(column: Column[Any]) -> TextClause:
    """Select the times of the first rows from each probe on. Written out, because building it takes
    longer than its answer.
    """
    first = (
        f"(SELECT {column.name} FROM {column.table.name} WHERE id >= :id{{}} ORDER BY id LIMIT 1)"  # noqa: S608  # names of ours
    )
    return text("SELECT " + ", ".join(map(first.format, range(PLACES))))


def between(
    connection: Connection, column: Column[Any], since: float = 0.0, until: float = 0.0
) -> list[ColumnElement[bool]]:
    """Conditions: the row is within these times; 0 for any."""
    told = []
    if since:
        first = id_at(connection, column, since - SLACK)
        told += [column >= since, column.table.c.id >= first]
    if until:
        last = id_at(connection, column, until + SLACK)
        told += [column < until, column.table.c.id < last]
    return told


def opened_between(
    connection: Connection, since: float = 0.0, until: float = 0.0
) -> list[ColumnElement[bool]]:
    """Conditions: the turn was opened within these times; 0 for any. After a clock jump, ids do not
    follow the times of turns, but requests are indexed by time: no turn that asked a model is
    missed.
    """
    told, used = [], [usage.c.step != PAYER]
    if since:
        told.append(turns.c.opened >= since)
        used.append(usage.c.at >= since)
    if until:
        told.append(turns.c.opened < until)
        used.append(usage.c.at < until)
    if not told:
        return []
    asked = turns.c.turn_id.in_(select(usage.c.turn_id).where(*used))
    low, high = connection.execute(
        select(func.min(turns.c.id), func.max(turns.c.id)).where(asked)
    ).one()
    if since:
        first = id_at(connection, turns.c.opened, since - SLACK)
        told.append(turns.c.id >= (first if low is None else min(first, low)))
    if until:
        last = id_at(connection, turns.c.opened, until + SLACK)
        told.append(turns.c.id < (last if high is None else max(last, high + 1)))
    return told
