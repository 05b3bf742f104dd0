"""Entries into the database, in one transaction, wholly or not at all.

Where the connection is lost during a commit, the server can be asked what became of it (PostgreSQL;
SQLite leaves no such doubt).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from sqlalchemy import Connection, text

from adapters.storage.ahead import Ahead, Put, move_mark, read_mark
from adapters.storage.columns import Row
from adapters.storage.crossed import is_crossed
from adapters.storage.database import Database
from adapters.storage.failures import Blame, Unusable, fault
from adapters.storage.redaction import redact_turns
from adapters.storage.rows import rows
from adapters.storage.statements import Prepared, Statement, compiled


@dataclass(frozen=True, slots=True)
class Doubt:
    """A transaction whose commit was not answered: its number on the server, and how many entries
    it holds.
    """

    number: str
    entries: int


class Transactions:
    """Writes entries into a database, each that was written ahead only once."""

    def __init__(self, database: Database, ahead: Ahead | None) -> None:
        self._database = database
        self._ahead = ahead
        self._statements: dict[Statement, Prepared] = {}
        self._doubt: Doubt | None = None

    def write(self, connection: Connection, batch: Sequence[Put]) -> None:
        """Write all of these entries or none. Raises the driver's errors."""
        planned = [(put, rows(put.entry, put.taken)) for put in batch]
        if not planned:
            return
        if not self._statements:
            self._statements = compiled(self._database.dialect)
        driver = connection.connection
        cursor: Any = driver.cursor()
        try:
            if self._database.is_sqlite:
                cursor.execute("BEGIN IMMEDIATE")
            held = self._held(batch)
            mark = read_mark(cursor) if held else None
            applied = {number for number in held if mark is not None and number <= mark}
            ours = sorted(
                (row for put, rows_ in planned if put.number not in applied for row in rows_),
                key=_place,
            )
            for statement, group in groupby(ours, key=_statement):
                if statement is Statement.FIND_READERS:
                    for _, recalled in group:
                        redact_turns(cursor, self._statements, recalled)
                    continue
                values = self._statements[statement].values
                self._execute(cursor, statement, [values(parameters) for _, parameters in group])
            if not self._database.is_sqlite:
                self._doubt = Doubt(self._seal(cursor), len(batch))
            if held:
                move_mark(cursor, held[-1])
            driver.commit()
        except Exception as error:
            if fault(error) is Blame.ENTRY or is_crossed(error):
                self._doubt = None
                driver.rollback()
            raise
        self._doubt = None
        cursor.close()
        self._database.note()
        if held and self._ahead is not None:
            self._ahead.clear(held[-1])

    def _execute(self, cursor: Any, statement: Statement, values: list[Any]) -> None:
        sql = self._statements[statement].sql
        if len(values) == 1:
            cursor.execute(sql, values[0])
        else:
            cursor.executemany(sql, values)

    def _seal(self, cursor: Any) -> str:
        """The last that a transaction does on a server; its number there. Raises Taken where it may
        not be committed.
        """
        if number := self._database.fence(cursor):
            return number
        cursor.execute("SELECT pg_current_xact_id()::text")
        return str(cursor.fetchone()[0])

    def _held(self, batch: Sequence[Put]) -> list[int]:
        """The numbers of the entries that were written ahead; they rise."""
        return [put.number for put in batch if self._ahead is not None and self._ahead.holds(put)]

    def written_after_all(self, connection: Connection) -> int:
        """How many entries the commit has written that was not answered; none where there is no
        such doubt. Raises Unusable where the server does not know yet.
        """
        doubt = self._doubt
        if doubt is None:
            return 0
        with connection.begin():
            status = connection.scalar(
                text("SELECT pg_xact_status(CAST(:number AS xid8))"), {"number": doubt.number}
            )
        if status == "in progress":
            raise Unusable("the server has not yet decided about an earlier commit")
        self._doubt = None
        return doubt.entries if status == "committed" else 0


def _place(row: Row) -> int:
    return row[0] // 10


def _statement(row: Row) -> Statement:
    return row[0]
