"""Writing ahead: a few entries become lines of a small file at once, and rows with the next batch.
SQLite only. The rest of the package only calls `batches_for`; backups copy the file, and
`baseline.py` refuses one left by an older version.

A batch touches a dozen pages and must wake its thread; a line is one short write in the thread that
put the entry. So waiting for few entries takes hardly any time. Under load batches are cheaper, and
nothing is written ahead. Measured for the same two entries: 7 us as lines; 19 us as rows of an
extra table; 130 us as their final rows, committed on the event loop's own connection (which made
the added p50 1.4 times as long).

Invariant: line numbers rise, and the database records up to which number lines are applied, in the
transaction that applies them. Any process that finds later lines may apply them (the next start, or
`forget` beside a running bot). One process writes the file and locks it; others work without.
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

FEW = 8  # entries; a batch is cheaper for more
LARGE = 65_536  # bytes; more is not written twice
SLOW = 0.02  # seconds of a write that blocks the event loop too long
REST, LONGEST_REST = (
    0.5,
    30.0,
)  # seconds without writing ahead afterwards; doubled for each slow write within a minute
MINUTE = 60.0  # also between two attempts to lock the file

APPLIED = "SELECT number FROM applied"
BEGIN_MARK = "INSERT INTO applied (number) SELECT ? WHERE NOT EXISTS (SELECT 1 FROM applied)"
MOVE_MARK = "UPDATE applied SET number = ? WHERE number < ?"

logger = logging.getLogger(__name__)


class Ahead:
    """The file beside a database.

    `write` is for the event loop's thread and never blocks: it fails instead, and the batch does
    the work. What it wrote survives the process (not a power failure: nothing is synced) and will
    be stored unless no table can hold it. `open`, `left`, `clear` and `abandon` are for the
    writer's thread, the others for both.
    """

    def __init__(self, database: Path) -> None:
        self._file = database.with_name(database.name + LINES)
        self._lock = threading.Lock()
        self._descriptor = -1
        self._ready = False  # lines left by others have been read
        self._last = 0  # last number in the file, or applied
        self._since = 0  # numbers up to this one are in an earlier file
        self._rest = REST
        self._rests_until = 0.0
        self._tried = -math.inf

    @property
    def is_due(self) -> bool:
        """Whether to try again to lock a file that another process had."""
        return not self._ready and time.monotonic() > self._tried + MINUTE

    def open(self) -> None:
        """Lock the file, unless another process has it. Writing begins once `left` was read."""
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
            if self._is_there(descriptor):  # the previous owner may just have removed it
                self._descriptor, descriptor = descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def _is_there(self, descriptor: int) -> bool:
        """Whether this open file still has its name."""
        try:
            return os.path.samestat(os.fstat(descriptor), self._file.stat())
        except OSError:
            return False

    def write(self, puts: Sequence[Put]) -> bool:
        """Write the entries that are not in the file yet. Returns False, with nothing written, if
        that is not possible at once.
        """
        started = time.monotonic()
        fresh: list[Put] = []
        for put in reversed(puts):
            if put.number > self._since:  # this one and all before it are in the file
                break
            fresh.append(put)
        if len(fresh) > FEW or started < self._rests_until:
            return False
        if not self._lock.acquire(blocking=False):
            return False
        try:
            numbered = list(enumerate(fresh[::-1], max(self._last + 1, time.time_ns() // 1000)))
            # Begin with a line end, because a full disk may have left half a line.
            lines = b"\n".join([b"", *[_line(number, put) for number, put in numbered], b""])
            if not self._ready or len(lines) > LARGE or not self._append(lines):
                return False
            self._last = numbered[-1][0]
        except Exception:  # the batch will report which entry is wrong
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
        """A single slow write is an accident; repeated ones double the pause."""
        self._rest = min(2 * self._rest, LONGEST_REST) if now < self._rests_until + MINUTE else REST
        self._rests_until = now + self._rest

    def left(self, mark: int) -> list[Put]:
        """Return the entries written and not applied, in order. One that cannot be read is logged
        and lost.

        `mark` is the last applied number. Half a line at the end was never confirmed.
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
        """Whether the entry is in the current file."""
        return put.number > self._since

    def clear(self, number: int) -> None:
        """All entries up to this number are applied: empty the file if that is all of it."""
        with (
            self._lock,
            suppress(OSError),
        ):  # the next call empties it; applied lines are skipped
            if self._descriptor >= 0 and self._last <= number:
                os.ftruncate(self._descriptor, 0)
            self._ready &= self._is_there(
                self._descriptor
            )  # else the file was removed, and lines in it would be lost

    def close(self) -> None:
        """Unlock the file, and delete it if it is empty; another process may write then."""
        with self._lock:
            descriptor, self._descriptor = self._descriptor, -1
            self._ready = False
            if descriptor >= 0:
                with suppress(OSError):
                    if not os.fstat(descriptor).st_size and self._is_there(descriptor):
                        self._file.unlink()
                os.close(descriptor)

    def abandon(self) -> None:
        """The database was replaced: the lines written so far do not belong to the new one."""
        self.close()
        self._since = self._last


def _line(number: int, put: Put) -> bytes:
    return b"%d %a %b" % (number, put.taken, codec.encode(put.entry))


def _read(line: bytes) -> Put:
    number, taken, text = line.split(b" ", 2)
    try:
        return Put(codec.read(Entry, text.decode()), float(taken), int(number))
    except codec.Unreadable as error:
        raise ValueError(str(error)) from error


def read_mark(cursor: Any) -> int | None:
    """Return the last applied number; None in a new database."""
    cursor.execute(APPLIED)
    row = cursor.fetchone()
    return None if row is None else int(row[0])


def begin_mark(cursor: Any) -> int:
    """Set the mark of a new database, so that older lines are ignored. Returns the mark, which
    another process may have set first.
    """
    cursor.execute(BEGIN_MARK, (mark := time.time_ns() // 1000,))
    return read_mark(cursor) or mark


def move_mark(cursor: Any, number: int) -> None:
    """All entries up to this number are applied, or cannot be."""
    cursor.execute(MOVE_MARK, (number, number))


class AheadTransactions(Transactions):
    """Transactions that write an entry only once, although it may also have been written ahead."""

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
        """The rising numbers of the entries written ahead."""
        return [put.number for put in batch if self._ahead.holds(put)]


class AheadBatches(EntryBatches):
    """Batches for an SQLite `file`. On connecting, lines of any process that are not applied yet
    are applied.
    """

    def __init__(self, database: Database, file: Path, *, stamp: Callable[[], str]) -> None:
        super().__init__(database, stamp=stamp)
        self.ahead = Ahead(file)
        self._transactions = AheadTransactions(database, self.ahead)

    def write_at_once(self, puts: Sequence[Put], /) -> bool:
        """Write these ahead. Returns False, with nothing written, if that is impossible now."""
        return self.ahead.write(puts)

    def write(self, batch: Sequence[Put]) -> Written:
        """Like any batch, but first try again to lock the file."""
        if self.ahead.is_due:
            self.close()  # reconnect, to lock it
        return super().write(batch)

    def end(self) -> None:
        """Close for good, and unlock the file."""
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
        """Apply the lines of an ended process, or from before the connection was lost."""
        cursor: Any = connection.connection.cursor()
        self.ahead.open()  # also before abandoning it: the lines may be another process's
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
    """Return batches for this database, with writing ahead on SQLite."""
    if database.file is None:
        return EntryBatches(database, stamp=stamp)
    return AheadBatches(database, database.file, stamp=stamp)
