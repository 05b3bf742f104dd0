"""Writing ahead: a few entries go into one small table at once, and into their own tables with the next batch. SQLite.

A batch touches a dozen pages and its thread must be woken first; one row of JSON here is one page, written where the
entry was put. So whoever waits for few entries waits a tenth of a millisecond; under load batches are cheaper, and
nothing is written ahead.

Invariant: an entry that was written ahead is applied by the very transaction that deletes its row here. Whoever finds
such rows may apply them (the next start, or `forget` beside a running bot): nobody else will.
"""

from __future__ import annotations

import json
import logging
import sqlite3
import threading
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from bot.domain import codec
from bot.domain.journal import Entry

FEW = 8  # entries; more are cheaper as a batch
LARGE = 65_536  # characters of JSON that are not written twice
SLOW = 0.02  # seconds after which the event loop has better things to do
REST = 30.0  # seconds nothing is written ahead then

ENTRY = Annotated[Entry, Field(discriminator="type")]

ADD = "INSERT INTO ahead (id, taken, entry) VALUES (?, ?, ?)"
TAKE = "DELETE FROM ahead WHERE id IN (SELECT value FROM json_each(?)) RETURNING id"
DROP = "DELETE FROM ahead WHERE id = ?"
LEFT = "SELECT id, taken, entry FROM ahead ORDER BY id"

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Put:
    """An entry, when it was put, and under which number it is written ahead; 0 while it is not."""

    entry: Entry
    taken: float
    number: int = 0


class Ahead:
    """The connection of the event loop's thread, which never waits: where it would have to, the batch must do.

    `close` may be called from the writer's thread.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        # Microseconds of the start, then one more for each entry: no process ever uses another's numbers.
        self._start = self._next = time.time_ns() // 1000
        self._connection: sqlite3.Connection | None = None
        self._first = self._next  # of this file: our numbers below went into one that is not used any more
        self._lock = threading.Lock()
        self._rests_until = 0.0

    def write(self, puts: Sequence[Put]) -> bool:
        """Write down, durably, those that are not; False (and nothing done) where that is not possible at once."""
        puts = [put for put in puts if not self.holds(put)]
        started = time.monotonic()
        if len(puts) > FEW or started < self._rests_until or not self._lock.acquire(blocking=False):
            return False
        try:
            rows = [
                (number, put.taken, codec.write(type(put.entry), put.entry))
                for number, put in enumerate(puts, self._next)
            ]
            if sum(len(text) for _, _, text in rows) > LARGE:
                return False
            self._insert(rows)
        except Exception:  # the batch will find out what is wrong, and with which entry
            logger.debug("nothing can be written ahead", exc_info=True)
            return False
        finally:
            self._lock.release()
        for put, (number, _, _) in zip(puts, rows, strict=True):
            put.number = number
        self._next += len(rows)
        if (now := time.monotonic()) - started > SLOW:
            self._rests_until = now + REST
        return True

    def _insert(self, rows: list[tuple[int, float, str]]) -> None:
        connection = self._connection or self._connect()
        if len(rows) == 1:  # a transaction of its own
            connection.execute(ADD, rows[0])
            return
        connection.execute("BEGIN IMMEDIATE")
        try:
            connection.executemany(ADD, rows)
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise

    def _connect(self) -> sqlite3.Connection:
        # The file must be there, and nobody's lock is waited for. Checkpoints are the batches' business.
        place = f"{self._file.absolute().as_uri()}?mode=rw"
        connection = sqlite3.connect(place, uri=True, timeout=0, isolation_level=None, check_same_thread=False)
        connection.execute("PRAGMA synchronous=NORMAL").close()
        connection.execute("PRAGMA wal_autocheckpoint=0").close()
        self._connection = connection
        return connection

    def close(self) -> None:
        """Let go of the file; it is opened again when it is needed."""
        with self._lock:
            connection, self._connection = self._connection, None
            if connection is not None:
                connection.close()

    def abandon(self) -> None:
        """The file is another one now: what was written ahead so far is not there."""
        self.close()
        self._first = self._next

    def holds(self, put: Put) -> bool:
        """Whether the entry was written ahead, into the file that is used now."""
        return put.number > 0 and not self._start <= put.number < self._first


def take(cursor: Any, numbers: Iterable[int]) -> set[int]:
    """Those of the numbers that were still there: their entries are the caller's to apply, in this transaction."""
    wanted = json.dumps(list(numbers))
    cursor.execute(TAKE, (wanted,))
    return {number for (number,) in cursor.fetchall()}


def drop(cursor: Any, number: int) -> None:
    """Forget an entry that can never be applied."""
    cursor.execute(DROP, (number,))


def left(cursor: Any) -> list[Put]:
    """What was written ahead and not applied, in order; what cannot be read is told to the log, and dropped."""
    cursor.execute(LEFT)
    puts: list[Put] = []
    for number, taken, text in cursor.fetchall():
        try:
            puts.append(Put(codec.read(ENTRY, text), taken, number))
        except codec.Unreadable as error:
            logger.warning("an entry of the journal cannot be read, and is lost: %s", error)
            with suppress(sqlite3.Error):
                drop(cursor, number)
    return puts
