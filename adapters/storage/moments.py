"""Where in a table a moment is: rows are written nearly in the order of their times, so that their
ids say it, and no time needs an index. Blocks.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Column, ColumnElement, Connection, FromClause, func, select

SLACK = 3600.0  # seconds that a row may have been written after others that are later


def ids(connection: Connection, table: FromClause) -> tuple[int, int]:
    """The first id there is, and the one behind the last. Asked for together, SQLite walks over all
    rows to find them.
    """
    first = connection.scalar(select(func.min(table.c.id)))
    last = connection.scalar(select(func.max(table.c.id)))
    return int(first or 1), int(last or 0) + 1


def id_at(connection: Connection, column: Column[Any], moment: float) -> int:
    """The id from which on the times of this column are not before that moment, nearly."""
    table = column.table
    low, high = ids(connection, table)
    while low < high:
        middle = (low + high) // 2
        row = connection.execute(
            select(table.c.id, column).where(table.c.id >= middle).order_by(table.c.id).limit(1)
        ).one_or_none()
        if row is None or row[1] >= moment:
            high = middle
        else:
            low = int(row[0]) + 1
    return low


def between(
    connection: Connection, column: Column[Any], since: float = 0.0, until: float = 0.0
) -> list[ColumnElement[bool]]:
    """That a row is of these times; 0 for any."""
    told = []
    if since:
        first = id_at(connection, column, since - SLACK)
        told += [column >= since, column.table.c.id >= first]
    if until:
        last = id_at(connection, column, until + SLACK)
        told += [column < until, column.table.c.id < last]
    return told
