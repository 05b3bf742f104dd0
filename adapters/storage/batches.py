"""Writes entries into the database, many per transaction, in the one writing thread.

Invariant: an entry is written completely or not at all, and never twice: after a commit without a
response, its outcome is queried before anything else is written.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, TypeVar

from msgspec import Struct
from sqlalchemy import Connection, text

from adapters.storage.claim import JournalTaken
from adapters.storage.database import (
    Blame,
    Database,
    Unusable,
    describe_error,
    fault,
    is_conflict,
    retry_conflicts,
)
from adapters.storage.notices import FROM_MEMORY, SILENCE
from adapters.storage.redaction import redact_turns
from adapters.storage.rows import rows
from adapters.storage.statements import Prepared, Row, Statement, compiled
from bot.core.journal import Entry
from bot.core.language import Bilingual
from frostagent.types.errors import ConfigError


class Put(Struct):
    """An entry, and the time it was put. `number` is above 0 once it was written ahead."""

    entry: Entry
    taken: float
    number: int = 0


@dataclass(frozen=True, slots=True)
class Doubt:
    """A transaction whose commit got no response: its number on the server, its entry count."""

    number: str
    entries: int


class Transactions:
    def __init__(self, database: Database) -> None:
        self._database = database
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
            written = self._begin(cursor, batch)
            ours = sorted(
                (row for put, rows_ in planned if put.number not in written for row in rows_),
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
            driver.commit()
        except Exception as error:
            if fault(error) is Blame.ENTRY or is_conflict(error):
                self._doubt = None
                driver.rollback()
            raise
        self._doubt = None
        cursor.close()
        self._database.note()

    def _begin(self, cursor: Any, _batch: Sequence[Put], /) -> Collection[int]:
        """Begin the transaction. Returns the numbers of entries that are in their tables."""
        if self._database.is_sqlite:
            cursor.execute("BEGIN IMMEDIATE")
        return ()

    def _execute(self, cursor: Any, statement: Statement, values: list[Any]) -> None:
        sql = self._statements[statement].sql
        if len(values) == 1:
            cursor.execute(sql, values[0])
        else:
            cursor.executemany(sql, values)

    def _seal(self, cursor: Any) -> str:
        """Run the last statement before the commit. Returns the transaction's number on the server.
        Raises JournalTaken if it must not be committed.
        """
        if number := self._database.fence(cursor):
            return number
        cursor.execute("SELECT pg_current_xact_id()::text")
        return str(cursor.fetchone()[0])

    def written_after_all(self, connection: Connection) -> int:
        """Return how many entries the unconfirmed commit has written; 0 if there is none. Raises
        Unusable if the server does not know yet.
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


T = TypeVar("T")

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Written:
    """The progress of a batch: its first `done` entries are settled; those at the indexes `bad` can
    never be written.

    `failure` says why it stopped; empty if it is complete.
    """

    done: int
    bad: tuple[int, ...] = ()
    failure: str = ""


class EntryBatches:
    """Writes into a database; connects when needed, and again after every failure.

    `stamp` returns the time for the name of a damaged file. All methods but `write_at_once` and
    `condemn` are for the writer's thread.
    """

    def __init__(self, database: Database, *, stamp: Callable[[], str]) -> None:
        self._database = database
        self._stamp = stamp
        self._connection: Connection | None = None
        self._transactions = Transactions(database)
        self._damage = ""

    @property
    def meanwhile(self) -> Bilingual:
        """What the bot does while the database cannot be written, for people."""
        return (SILENCE if self._database.is_leased else FROM_MEMORY).fill()

    def condemn(self, reason: str) -> None:
        """A read found the file damaged: the next batch starts a new one. Safe from any thread."""
        self._damage = reason

    def write_by(self, make: Callable[[Database], Transactions]) -> None:
        """Write with the transactions that `make` returns. Call it before the first write."""
        self._transactions = make(self._database)

    def open(self) -> str:
        """Connect for the first time. Returns why that is not possible now, or an empty string.
        Raises ConfigError if it never will be.
        """
        try:
            self._connected()
        except ConfigError:
            raise
        except Exception as error:
            logger.debug("the database cannot be opened", exc_info=True)
            return self._failed(error)
        return ""

    def settle(self) -> None:
        """Bring everything into its tables. Raises ConfigError, Unusable, driver's errors."""
        self._connected()
        self.end()

    def end(self) -> None:
        self.close()

    def write_at_once(self, _puts: Sequence[Put], /) -> bool:
        """Make these durable before their batch, and number them. Returns False, with nothing done,
        if that would block. For the event loop's thread, while no batch is being written.
        """
        return False

    def write(self, batch: Sequence[Put]) -> Written:
        """Write the entries in order. One that can never be written is skipped and logged.

        An empty batch only checks the database. Raises JournalTaken if another process has it.
        """
        done = 0
        try:
            done = self._transactions.written_after_all(self._connected())
            retry_conflicts(lambda: self._transactions.write(self._connected(), batch[done:]))
            if not batch:
                self._try_out()
        except JournalTaken:
            self.close()
            raise
        except Exception as error:
            logger.debug("a batch cannot be written", exc_info=True)
            if fault(error) is Blame.ENTRY:
                return self._write_each(batch, done)
            return Written(done, failure=self._failed(error))
        return Written(len(batch))

    def _try_out(self) -> None:
        """Check that the connection works and the journal is still ours."""
        if self._database.is_lost:
            self.close()
        if self._database.is_sqlite:
            self._connected()
            return
        driver = self._connected().connection
        cursor = driver.cursor()
        cursor.execute("SELECT 1")
        self._database.fence(cursor)
        driver.commit()

    def run(self, job: Callable[[Connection], T]) -> T:
        """Run something else in a transaction. Raises what the job or the database raises."""
        try:
            done = retry_conflicts(lambda: self._run(job))
            self._database.note()
        except Exception as error:
            if fault(error) is not Blame.ENTRY:
                self._failed(error)
            raise
        return done

    def _run(self, job: Callable[[Connection], T]) -> T:
        with self._connected().begin():
            done = job(self._connected())
            self._database.fence(self._connected().connection.cursor())
        return done

    def close(self) -> None:
        """Give up the connection; its transaction is rolled back."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.invalidate()
            connection.close()

    def _write_each(self, batch: Sequence[Put], done: int) -> Written:
        """Write each entry in its own transaction, because one of them is at fault."""
        bad: list[int] = []
        for place in range(done, len(batch)):
            try:
                self._transactions.write(self._connected(), [batch[place]])
            except Exception as error:
                logger.debug("an entry cannot be written", exc_info=True)
                if fault(error) is not Blame.ENTRY:
                    return Written(place, tuple(bad), self._failed(error))
                bad.append(place)
                logger.warning(
                    "a %s cannot be stored, and is lost: %s",
                    batch[place].entry.type,
                    describe_error(error),
                )
        return Written(len(batch), tuple(bad))

    def _connected(self) -> Connection:
        if self._damage:
            raise Unusable(self._damage)
        if self._connection is None:
            self._connection = self._database.connect()
        return self._connection

    def _failed(self, error: Exception) -> str:
        """Close the connection; put a damaged file aside. Returns why, for the operator."""
        try:
            self.close()
            if self._damage or fault(error) is Blame.DAMAGE:
                aside = self._put_aside()
                self._damage = ""
                return f"{describe_error(error)}; it was moved to {aside}, and a new one is begun"
        except Exception as another:
            logger.exception("the database cannot even be closed")
            return describe_error(another)
        return describe_error(error)

    def _put_aside(self) -> str:
        return self._database.put_aside(self._stamp())
