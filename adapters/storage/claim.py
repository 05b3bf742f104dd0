"""Which process has the journal, by a lock that the system releases when the process dies; and what
an SQLite file lost when a process was killed.

SQLite: a lock on the file `-lock` beside the database. It names the owner and, while that lives,
how far it has written. A proper end deletes it, so the next owner knows whether the one before was
killed. PostgreSQL: an advisory lock of the writing session: losing the connection loses the lock,
and nothing is written before both are back.
"""

from __future__ import annotations

import errno
import logging
import os
import socket
import sqlite3
import sys
import threading
import time
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Connection, text

from adapters.storage.notices import LOG_CUT, LOG_EMPTIED, LOG_GONE
from adapters.storage.url import VARIABLE
from bot.core.language import Bilingual
from frostagent.types.errors import ConfigError, Problem

if sys.platform != "win32":
    import fcntl

SUFFIX = "-lock"
WAL_SUFFIX, SHM_SUFFIX = "-wal", "-shm"
PAGES = 16  # offset in the index of the number of valid pages in the log: 4 bytes, native order
OWNER_ONLY = 0o600
PATIENCE = 2.0  # seconds to wait for a dying process or a command
PAUSE = 0.05
WITHOUT_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP}
HELD = {errno.EAGAIN, errno.EWOULDBLOCK, errno.EACCES}
MEND = Bilingual(
    (
        "Stop that one first (`docker compose stop bot` or `frostagent stop` in its folder), or"
        " name another journal"
    ),
    (
        "先停下那一个（`docker compose stop bot`，或者在它的目录里运行 `frostagent stop`），"
        "或者换一个数据库"
    ),
)

CLAIM = 0x46726F73  # "Fros": the class of our advisory locks; the object is the schema
LOCK_OBJECT = "hashtext(coalesce(current_schema(), ''))"
TRY_LOCK = f"SELECT pg_try_advisory_lock(:claim, {LOCK_OBJECT})"
WHO_HAS_IT = f"""
    SELECT a.application_name FROM pg_locks l JOIN pg_stat_activity a USING (pid)
    WHERE l.locktype = 'advisory' AND l.granted AND l.classid = :claim
    AND l.objid = {LOCK_OBJECT}::oid AND l.objsubid = 2
    AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""  # noqa: S608  # no value of anybody's in it
# With keepalives, the lock of a machine that is gone is free within half a minute.
INTRODUCTION = """
    SELECT set_config('application_name', :name, false),
    set_config('tcp_keepalives_idle', '10', false),
    set_config('tcp_keepalives_interval', '5', false),
    set_config('tcp_keepalives_count', '3', false)
"""
LINE = 200  # bytes; each line overwrites the one before
NAME = 63  # characters of an application name in PostgreSQL

logger = logging.getLogger(__name__)


class JournalTaken(ConfigError):
    """Another process has the journal."""

    def __init__(self, place: str, holder: str) -> None:
        super().__init__(
            Problem(
                VARIABLE,
                Bilingual(
                    f"the journal is in use ({place}) by another process{holder}",
                    f"数据库（{place}）正被另一个进程使用{holder}",
                ),
                MEND,
            )
        )


class Away(ConfigError):
    """The journal cannot be reached, so its owner is unknown."""

    def __init__(self, place: str, why: str) -> None:
        fix = Bilingual("Start that server, or correct the name", "启动那台数据库，或者改正名字")
        what = Bilingual(
            f"the journal cannot be reached ({place}: {why})", f"连不上数据库（{place}：{why}）"
        )
        super().__init__(Problem(VARIABLE, what, fix))


@dataclass(frozen=True, slots=True)
class Traces:
    """How far a killed process had come: valid pages in its write-ahead log, and the database's
    last change (ns). 0 pages if the log held nothing that the database lacks.
    """

    pages: int
    changed: int


class FileClaim:
    """The lock of an SQLite database. All methods block: for the writer's thread, and commands."""

    def __init__(self, database: Path) -> None:
        self._database = database
        self._file = database.with_name(database.name + SUFFIX)
        self._index_file = database.with_name(database.name + SHM_SUFFIX)
        self._descriptor = self._index = -1
        self._changed = -1
        self._noted: Traces | None = None
        self._has_warned = False

    def take(self) -> Traces | None:
        """Lock the journal. Returns the traces of a killed owner, None after a proper end.

        Does nothing if it is already locked here. Raises JournalTaken, and OSError if the folder is
        not writable.
        """
        if self._descriptor >= 0:
            if self.is_held:
                return None
            self._let_go()
        if sys.platform == "win32":
            self._warn("this system has no locks for it")
            return None
        deadline = time.monotonic() + PATIENCE
        while not self._try():
            if time.monotonic() > deadline:
                raise JournalTaken(str(self._database), _told(_read(self._file)))
            time.sleep(PAUSE)
        return _traces(_read(self._file))

    @property
    def is_held(self) -> bool:
        """Whether the lock is ours and its file still has its name."""
        if self._descriptor < 0:
            return False
        try:
            return os.path.samestat(os.fstat(self._descriptor), self._file.stat())
        except OSError:
            return False

    @property
    def was_removed(self) -> bool:
        """Whether the file of our lock was removed."""
        return self._descriptor >= 0 and not self.is_held

    def follow(self) -> int:
        """From here on record how far the open log goes. Returns its number of valid pages."""
        self._close_index()
        self._changed, self._noted = -1, None
        self.note()
        return self._pages()

    def note(self) -> None:
        """Record how far the log goes; called after each batch."""
        if sys.platform == "win32" or self._descriptor < 0:
            return
        changed = changed_at(self._database)
        # A batch that changed the database file has just moved the log into it: then nothing is in
        # the log alone.
        now = Traces(self._pages() if self._changed in {changed, -1} else 0, changed)
        self._changed = changed
        if now != self._noted:
            self._noted = now
            line = f"{os.getpid()} {socket.gethostname()} {now.pages} {now.changed}\n".ljust(
                LINE
            ).encode()
            with suppress(OSError):  # only a record
                os.pwrite(self._descriptor, line, 0)

    def _pages(self) -> int:
        """The valid pages in the log, by its index (https://www.sqlite.org/walformat.html)."""
        if sys.platform == "win32":  # nothing is recorded there
            return 0
        if self._index < 0:  # a new database creates it with its first page
            try:
                self._index = os.open(self._index_file, os.O_RDONLY)
            except OSError:
                return 0
        return int.from_bytes(os.pread(self._index, 4, PAGES), sys.byteorder)

    def _close_index(self) -> None:
        index, self._index = self._index, -1
        if index >= 0:
            os.close(index)

    def release(self, *, whole: bool) -> None:
        """Unlock. With `whole`, after a proper end, the file is deleted."""
        if whole and self.is_held:  # a process that has it open notices, and makes another
            with suppress(OSError):
                self._file.unlink()
        self._let_go()

    def _let_go(self) -> None:
        self._close_index()
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def _try(self) -> bool:
        descriptor = os.open(self._file, os.O_RDWR | os.O_CREAT, OWNER_ONLY)
        try:
            if sys.platform != "win32":
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(descriptor)
            if error.errno not in {*WITHOUT_LOCKS, *HELD}:
                raise
            if error.errno in WITHOUT_LOCKS:
                self._warn(os.strerror(error.errno or 0))
            return error.errno in WITHOUT_LOCKS
        self._descriptor = descriptor
        if not self.is_held:  # the previous owner may just have removed it
            self._let_go()
            return False
        return True

    def _warn(self, why: str) -> None:
        if not self._has_warned:
            logger.warning(
                "nothing keeps a second process from the journal at %s (%s)", self._database, why
            )
        self._has_warned = True


def holder_of(database: Path) -> str | None:
    """Return the owner of the journal in this file, for people: empty if unknown, None if there is
    none. Always None on Windows.
    """
    file = database.with_name(database.name + SUFFIX)
    try:
        descriptor = os.open(file, os.O_RDONLY)
    except OSError:
        return None
    try:
        if sys.platform != "win32":
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as error:
        return None if error.errno in WITHOUT_LOCKS else _told(_read(file))
    else:
        return None
    finally:
        os.close(descriptor)


# --- PostgreSQL -----------------------------------------------------------------------------------


def take_session(connection: Connection, place: str) -> None:
    """Lock the journal for this connection. Raises JournalTaken, and the driver's errors."""
    name = f"frostagent {os.getpid()}@{socket.gethostname()}"[:NAME]
    deadline = time.monotonic() + PATIENCE
    with connection.begin():
        while not connection.scalar(text(TRY_LOCK), {"claim": CLAIM}):
            if time.monotonic() > deadline:
                raise JournalTaken(place, holder_of_session(connection) or "")
            time.sleep(PAUSE)
        connection.execute(text(INTRODUCTION), {"name": name})


def holder_of_session(connection: Connection) -> str | None:
    """Return the process that has the journal by a session, for people: empty if unknown, None if
    there is none.
    """
    name: str | None = connection.scalar(text(WHO_HAS_IT), {"claim": CLAIM})
    if name is None:
        return None
    who, _, host = name.removeprefix("frostagent ").partition("@")
    return _described(who.partition(".")[0], host) if host else ""  # a worker's has a random part


# --- the file -------------------------------------------------------------------------------------


def _read(file: Path) -> list[str]:
    try:
        return file.read_text("utf-8", "replace").split()
    except OSError:
        return []


def _traces(words: list[str]) -> Traces | None:
    match words:
        case []:
            return None
        case [_, _, pages, changed] if (
            f"{pages}{changed}".isascii() and pages.isdigit() and changed.isdigit()
        ):
            return Traces(int(pages), int(changed))
        case _:
            return Traces(0, 0)


def _told(words: list[str]) -> str:
    return _described(words[0], words[1]) if len(words) > 1 else ""


def _described(pid: str, host: str) -> str:
    return f" (pid {pid})" if host == socket.gethostname() else f" (pid {pid} on {host})"


def changed_at(file: Path) -> int:
    """Time of the last change (ns); 0 if it is missing."""
    try:
        return file.stat().st_mtime_ns
    except OSError:
        return 0


LONGEST = 30.0  # seconds a check may read


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A journal before opening: the database's last change (ns), and bytes in its log or -1."""

    changed: int
    log: int


def inspect_file(file: Path) -> FoundFile:
    """Raises OSError."""
    log = file.with_name(file.name + WAL_SUFFIX)
    return FoundFile(changed_at(file), log.stat().st_size if log.exists() else -1)


def describe_loss(left: Traces, found: FoundFile, *, good: int) -> Bilingual | None:
    """Describe what was lost, if anything. `good` is how many pages SQLite took from the log."""
    if (
        good >= left.pages or found.changed != left.changed
    ):  # another process may have moved them into the database
        return None
    if found.log <= 0:
        return (LOG_GONE if found.log < 0 else LOG_EMPTIED).fill()
    return LOG_CUT.fill(good=good, pages=left.pages)


class SelfCheck:
    """SQLite's own integrity check, table by table, limited to `longest` seconds."""

    def __init__(self, file: Path, *, longest: float = LONGEST) -> None:
        self._file = file
        self._longest = longest
        self._over = threading.Event()
        self._connection: sqlite3.Connection | None = None

    def run(self) -> str:
        """Return the damage in SQLite's words; empty if none was found in time."""
        alarm = threading.Timer(self._longest, self.stop)
        alarm.daemon = True
        alarm.start()
        try:
            uri = f"{self._file.absolute().as_uri()}?mode=ro"
            with closing(sqlite3.connect(uri, uri=True, check_same_thread=False)) as connection:
                self._connection = connection
                return self._first_problem(connection)
        except sqlite3.Error as error:
            return "" if self._over.is_set() else str(error)
        finally:
            alarm.cancel()

    def stop(self) -> None:
        """Stop the check; safe from any thread."""
        self._over.set()
        if (connection := self._connection) is not None:
            with suppress(sqlite3.ProgrammingError):  # closed already
                connection.interrupt()

    def _first_problem(self, connection: sqlite3.Connection) -> str:
        tables = connection.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY rootpage"
        ).fetchall()
        for (table,) in tables:
            if self._over.is_set():
                break
            ((said,), *_) = connection.execute(f"PRAGMA quick_check('{table}')").fetchall()
            if said != "ok":
                return str(said).splitlines()[-1]
        return ""
