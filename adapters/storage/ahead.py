"""Writing ahead: a few entries become lines of a small file at once, and rows with the next batch.
SQLite only. The rest of the package calls `batches_for`; beyond that it knows a file of lines,
which backups copy and `baseline.py` refuses if an older version left it.

A batch touches a dozen pages and its thread must be woken first; a line is one short write, made
where the entry was put. So whoever waits for few entries hardly waits; under load batches are
cheaper, and nothing is written ahead. Measured for the same two entries: 7 us as lines, 19 as rows
of a table of their own, 130 as the rows they become, committed on a connection of the event loop's
own (which made the added p50 1.4 times as long).

Invariant: lines have rising numbers, and the database knows up to which of them are applied: that
changes in the very transaction that applies them. Whoever finds later ones may apply them (the next
start, or `forget` beside a running bot). Only one process writes into the file, and locks it;
another one does without.
"""

from __future__ import annotations

import logging
import math
import os
import sys
import threading
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from sqlalchemy import Connection

from adapters.storage.batches import EntryBatches, Put, Transactions, Written
from adapters.storage.database import Blame, Database, Unusable, fault
from adapters.storage.files import LINES
from bot.core import codec
from bot.core.journal import Entry

if sys.platform != "win32":
    import fcntl

FEW = 8  # entries; more are cheaper as a batch
LARGE = 65_536  # bytes that are not written twice
SLOW = 0.02  # seconds after which the event loop has better things to do
REST, LONGEST_REST = (
    0.5,
    30.0,
)  # seconds nothing is written ahead then: twice as long each time within a minute
MINUTE = 60.0  # also between two attempts to have the file

APPLIED = "SELECT number FROM applied"
BEGIN_MARK = "INSERT INTO applied (number) SELECT ? WHERE NOT EXISTS (SELECT 1 FROM applied)"
MOVE_MARK = "UPDATE applied SET number = ? WHERE number < ?"

logger = logging.getLogger(__name__)


class Ahead:
    """The file beside a database.

    `write` is for the event loop's thread and never waits: where it would have to, the batch must
    do. What it has promised outlives the process (not a power failure: nothing is synced), and is
    stored unless no table can hold it. `open`, `left`, `clear` and `abandon` are for the writer's
    thread, the others for both.
    """

    def __init__(self, database: Path) -> None:
        self._file = database.with_name(database.name + LINES)
        self._lock = threading.Lock()
        self._descriptor = -1
        self._ready = False  # what others left in it has been read
        self._last = 0  # number in the file, or applied
        self._since = 0  # numbers up to this were in a file that is another one now
        self._rest = REST
        self._rests_until = 0.0
        self._tried = -math.inf

    @property
    def is_due(self) -> bool:
        """Whether the file is not ours, and it is time to try once more to have it."""
        return not self._ready and time.monotonic() > self._tried + MINUTE

    def open(self) -> None:
        """Lock the file for writing, which begins once `left` was read. Does nothing where another
        process has it.
        """
        self._tried = time.monotonic()
        if self._descriptor >= 0 and not self._is_there(self._descriptor):
            self.abandon()
        if sys.platform == "win32" or self._descriptor >= 0:
            return
        descriptor = -1
        try:
            descriptor = os.open(self._file, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
            if sys.platform != "win32":
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            logger.debug("nothing is written ahead: %s", error)
        else:
            if self._is_there(descriptor):  # who had it locked may just have removed it
                self._descriptor, descriptor = descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def _is_there(self, descriptor: int) -> bool:
        """Whether others find this file under its name."""
        try:
            return os.path.samestat(os.fstat(descriptor), self._file.stat())
        except OSError:
            return False

    def write(self, puts: Sequence[Put]) -> bool:
        """Write down, durably, what is not there yet; False (and nothing done) where that is not
        possible at once.
        """
        started = time.monotonic()
        fresh: list[Put] = []
        for put in reversed(puts):
            if put.number > self._since:  # it is in this file, and so are all before it
                break
            fresh.append(put)
        if len(fresh) > FEW or started < self._rests_until:
            return False
        if not self._lock.acquire(blocking=False):
            return False
        try:
            numbered = list(enumerate(fresh[::-1], max(self._last + 1, time.time_ns() // 1000)))
            # First the end of a line: half of one may stand there, from a disk that was full.
            lines = b"\n".join([b"", *[_line(number, put) for number, put in numbered], b""])
            if not self._ready or len(lines) > LARGE or not self._append(lines):
                return False
            self._last = numbered[-1][0]
        except Exception:  # the batch will find out what is wrong, and with which entry
            logger.debug("nothing can be written ahead", exc_info=True)
            return False
        finally:
            self._lock.release()
        for number, put in numbered:
            put.number = number
        if (now := time.monotonic()) - started > SLOW:
            self._take_a_rest(now)
        return True

    def _append(self, lines: bytes) -> bool:
        written = os.write(self._descriptor, lines)
        if written < len(lines):  # the disk is full
            os.ftruncate(self._descriptor, os.fstat(self._descriptor).st_size - written)
        return written == len(lines)

    def _take_a_rest(self, now: float) -> None:
        """One slow write may be anybody's fault; a disk that is slow again soon is left alone for
        longer.
        """
        self._rest = min(2 * self._rest, LONGEST_REST) if now < self._rests_until + MINUTE else REST
        self._rests_until = now + self._rest

    def left(self, mark: int) -> list[Put]:
        """The entries written and not applied, in order; one that cannot be read is told to the
        log, and lost.

        `mark` is up to where it is applied. Half a line at the end was never promised to anybody.
        """
        puts: list[Put] = []
        lines: list[bytes] = []
        with suppress(FileNotFoundError):
            *lines, _torn = self._file.read_bytes().split(b"\n")
        for line in filter(None, lines):
            try:
                put = _read(line)
            except ValueError as error:
                logger.warning("an entry of the journal cannot be read, and is lost: %s", error)
                continue
            if put.number > mark:
                puts.append(put)
                mark = put.number
        with self._lock:
            self._last = max(self._last, mark)
            self._ready = self._descriptor >= 0
        return puts

    def holds(self, put: Put) -> bool:
        """Whether the entry was written ahead, into the file that is used now."""
        return put.number > self._since

    def clear(self, number: int) -> None:
        """Everything up to this number is applied: the file can be emptied, if that is all of
        it.
        """
        with (
            self._lock,
            suppress(OSError),
        ):  # then the next time, or what is there is seen to be applied
            if self._descriptor >= 0 and self._last <= number:
                os.ftruncate(self._descriptor, 0)
            self._ready &= self._is_there(
                self._descriptor
            )  # else somebody has removed it, and nobody would find it

    def close(self) -> None:
        """Let go of the file, and leave none where all of it is applied; another process may write
        then.
        """
        with self._lock:
            descriptor, self._descriptor = self._descriptor, -1
            self._ready = False
            if descriptor >= 0:
                with suppress(OSError):
                    if not os.fstat(descriptor).st_size and self._is_there(descriptor):
                        self._file.unlink()
                os.close(descriptor)

    def abandon(self) -> None:
        """The database is another one now: what was written ahead so far is not there."""
        self.close()
        self._since = self._last


def _line(number: int, put: Put) -> bytes:
    return b"%d %a %b" % (number, put.taken, codec.encode(put.entry))


def _read(line: bytes) -> Put:
    """Raises ValueError."""
    number, taken, text = line.split(b" ", 2)
    try:
        return Put(codec.read(Entry, text.decode()), float(taken), int(number))
    except codec.Unreadable as error:
        raise ValueError(str(error)) from error


def read_mark(cursor: Any) -> int | None:
    """Up to which number everything is applied; None in a new database."""
    cursor.execute(APPLIED)
    row = cursor.fetchone()
    return None if row is None else int(row[0])


def begin_mark(cursor: Any) -> int:
    """Lines that are older than this database are none of its; the mark, another process's if it
    was faster.
    """
    cursor.execute(BEGIN_MARK, (mark := time.time_ns() // 1000,))
    return read_mark(cursor) or mark


def move_mark(cursor: Any, number: int) -> None:
    """Everything up to this number is applied, or never can be."""
    cursor.execute(MOVE_MARK, (number, number))


class AheadTransactions(Transactions):
    """Those that write each entry only once that may have been written ahead."""

    def __init__(self, database: Database, ahead: Ahead) -> None:
        super().__init__(database)
        self._ahead = ahead

    def write(self, connection: Connection, batch: Sequence[Put]) -> None:
        """Write all of these entries or none. Raises the driver's errors."""
        super().write(connection, batch)
        if held := self._held(batch):
            self._ahead.clear(held[-1])

    def _begin(self, cursor: Any, batch: Sequence[Put], /) -> Collection[int]:
        written = super()._begin(cursor, batch)
        if not (held := self._held(batch)):
            return written
        mark = read_mark(cursor)
        move_mark(cursor, held[-1])
        return {number for number in held if mark is not None and number <= mark}

    def _held(self, batch: Sequence[Put]) -> list[int]:
        """The numbers of the entries that were written ahead; they rise."""
        return [put.number for put in batch if self._ahead.holds(put)]


class AheadBatches(EntryBatches):
    """Those of an SQLite `file`. Whatever any process has written ahead and not applied is applied
    whenever this one connects.
    """

    def __init__(self, database: Database, file: Path, *, stamp: Callable[[], str]) -> None:
        super().__init__(database, stamp=stamp)
        self.ahead = Ahead(file)
        self._transactions = AheadTransactions(database, self.ahead)

    def write_at_once(self, puts: Sequence[Put], /) -> bool:
        """Write these ahead; False (and nothing done) if that is not possible at once."""
        return self.ahead.write(puts)

    def write(self, batch: Sequence[Put]) -> Written:
        """As any batches do; the file that was another process's may be ours by now."""
        if self.ahead.is_due:
            self.close()  # to connect anew, and have it
        return super().write(batch)

    def end(self) -> None:
        """Close for good, and let go of the file."""
        self.ahead.close()
        super().end()

    def _write_each(self, batch: Sequence[Put], done: int) -> Written:
        written = super()._write_each(batch, done)
        for put in (batch[place] for place in written.bad):
            if self.ahead.holds(put):
                self.ahead.clear(put.number)
        return written

    def _connected(self) -> Connection:
        is_new = self._connection is None
        connection = super()._connected()
        if is_new:
            self._apply_what_is_left(connection)
        return connection

    def _apply_what_is_left(self, connection: Connection) -> None:
        """Apply what was written ahead, by a process that ended or before the connection was
        lost.
        """
        cursor: Any = connection.connection.cursor()
        self.ahead.open()  # also to abandon it: what stands there may be another process's
        if (mark := read_mark(cursor)) is None:
            self.ahead.abandon()
            mark = begin_mark(cursor)
            self.ahead.open()
        puts = self.ahead.left(mark)
        try:
            self._transactions.write(connection, puts)
        except Exception as error:
            if fault(error) is not Blame.ENTRY:
                raise
            if failure := self._write_each(puts, 0).failure:
                raise Unusable(failure) from error
        self.ahead.clear(max([mark, *[put.number for put in puts]]))

    def _put_aside(self) -> str:
        self.ahead.close()
        try:
            return super()._put_aside()
        finally:
            self.ahead.abandon()


def batches_for(database: Database, *, stamp: Callable[[], str]) -> EntryBatches:
    """What writes into this database, ahead if it can be (on SQLite)."""
    if database.file is None:
        return EntryBatches(database, stamp=stamp)
    return AheadBatches(database, database.file, stamp=stamp)
