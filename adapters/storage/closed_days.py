"""What was used on days that are over, added up once: ninety days of rows take 300 ms to add, their
sums a few. Blocks.

A day ends at midnight in the time zone of the process. It is added up some hours later: what was
used before midnight may be written after it.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from sqlalchemy import Connection, and_, case, func, insert, literal, select

from adapters.storage.tables import PAYER, day_usage, turns, usage

LATE = 2 * 3600.0  # seconds after midnight


def midnight(moment: float, *, later: int = 0) -> float:
    """The beginning of that day, or of one so many days later, in seconds since 1970.

    By the calendar: days of 23 and 25 hours are as long as they are.
    """
    day = datetime.fromtimestamp(moment, UTC).astimezone().date() + timedelta(days=later)
    return datetime(day.year, day.month, day.day).astimezone().timestamp()


def add_up(connection: Connection, *, now: float) -> bool:
    """Add up the oldest day that is over and was not added up yet; whether there was one."""
    last = connection.scalar(select(func.max(day_usage.c.day)))
    since = 0.0 if last is None else midnight(last, later=1)
    used = usage.c.at >= since, usage.c.at < midnight(now - LATE)
    first = connection.scalar(select(func.min(usage.c.at)).where(*used))
    if first is None:
        return False
    _add_up(connection, midnight(first), midnight(first, later=1))
    return True


def _add_up(connection: Connection, day: float, end: float) -> None:
    """Whose turn was erased meanwhile is nobody (erasure.py)."""
    turn = select(turns.c.id).where(turns.c.turn_id == usage.c.turn_id).exists()
    is_theirs = and_(usage.c.conversation != "", turn)
    theirs = (
        select(
            case((is_theirs, usage.c.conversation), else_="").label("conversation"),
            case((is_theirs, usage.c.asker), else_=0).label("asker"),
            *(usage.c[name] for name in ("model", "prompt", "completion", "cached", "cost")),
        )
        .where(usage.c.at >= day, usage.c.at < end, usage.c.step != PAYER)
        .subquery()
    )
    by = theirs.c.conversation, theirs.c.asker, theirs.c.model
    sums = select(
        literal(day),
        *by,
        func.count(),
        func.sum(theirs.c.prompt),
        func.sum(theirs.c.completion),
        func.sum(theirs.c.cached),
        func.count() - func.count(theirs.c.cost),
        func.coalesce(func.sum(theirs.c.cost), 0.0),
    ).group_by(*by)
    names = ("day", "conversation", "asker", "model", "requests", "prompt", "completion", "cached")
    connection.execute(insert(day_usage).from_select((*names, "unpriced", "cost"), sums))
