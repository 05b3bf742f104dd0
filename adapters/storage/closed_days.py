"""Sums of the days that are over, added up once: ninety days of rows take 300 ms to add, their
sums a few. Blocks.

A day ends at midnight in the time zone of the process. It is added up some hours later: what was
used before midnight may be written after it.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Double,
    Select,
    Table,
    and_,
    case,
    cast,
    func,
    insert,
    literal,
    select,
)

from adapters.storage.tables import PAYER, SHARED, day_tools, day_usage, tool_calls, turns, usage

LATE = 2 * 3600.0  # seconds after midnight


def midnight(moment: float, *, later: int = 0) -> float:
    """The beginning of that day, or of one so many days later, in seconds since 1970.

    By the calendar: days of 23 and 25 hours are as long as they are.
    """
    day = datetime.fromtimestamp(moment, UTC).astimezone().date() + timedelta(days=later)
    return datetime(day.year, day.month, day.day).astimezone().timestamp()


def add_up(connection: Connection, *, now: float) -> bool:
    """Add up the oldest day that is over and was not added up yet; whether there was one."""
    is_usage, is_tools = (_add_up_next(connection, one, now) for one in (day_usage, day_tools))
    return is_usage or is_tools


def _add_up_next(connection: Connection, table: Table, now: float) -> bool:
    """Each table by itself: of days from before there was one it is behind."""
    last = connection.scalar(select(func.max(table.c.day)))
    since = 0.0 if last is None else midnight(last, later=1)
    used = usage.c.at >= since, usage.c.at < midnight(now - LATE)
    first = connection.scalar(select(func.min(usage.c.at)).where(*used))
    if first is None:
        return False
    work = _add_up if table is day_usage else _add_up_tools
    work(connection, midnight(first), midnight(first, later=1))
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


def _add_up_tools(connection: Connection, day: float, end: float) -> None:
    by_tool = parts(usage.c.at >= day, usage.c.at < end).subquery()
    sums = select(literal(day), *by_tool.c)
    connection.execute(insert(day_tools).from_select(("day", "tool", *SHARED), sums))


def parts(*used: ColumnElement[bool]) -> Select[Any]:
    """By tool its part of the requests that are `used` (tool_costs.py): its name, and SHARED."""
    others = tool_calls.alias("others")
    count = select(func.count()).select_from(others).where(*_read(others))
    among = case(
        (tool_calls.c.id.is_(None), 1.0),
        else_=cast(count.correlate(usage).scalar_subquery(), Double),
    )
    tool = func.coalesce(tool_calls.c.name, "").label("tool")
    numbers = [usage.c[name] for name in ("prompt", "completion", "cached", "cost")]
    each = (
        select(tool, among.label("among"), *numbers)
        .select_from(usage.outerjoin(tool_calls, and_(*_read(tool_calls))))
        .where(usage.c.step != PAYER, *used)
        .subquery()
    )
    told = {
        "requests": literal(1.0, Double),
        "unpriced": case((each.c.cost.is_(None), 1.0), else_=0.0),
        "cost": func.coalesce(each.c.cost, 0.0),
    }
    sums = [func.sum(told.get(name, each.c.get(name)) / each.c.among) for name in SHARED]
    return select(each.c.tool, *sums).group_by(each.c.tool)


def _read(calls: Any) -> tuple[ColumnElement[bool], ...]:
    """That a request was the first to read the results of these calls."""
    return calls.c.turn_id == usage.c.turn_id, calls.c.step == usage.c.step - 1
