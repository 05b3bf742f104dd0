"""The damage to an SQLite file whose last process was killed: what of its write-ahead log is
missing, and what SQLite's own check says. Everything here blocks: threads only.

SQLite itself is silent about a log that is gone or cut off, and about all that stands in it behind
a damaged page: it goes on from what it could read. So that is compared with how far the killed
process had come.
"""

from __future__ import annotations

import sqlite3
import threading
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

from adapters.storage.claim import LOG, Traces, changed_at
from adapters.storage.told import LOG_CUT, LOG_EMPTIED, LOG_GONE
from bot.domain.tongue import Pair, filled

LONGEST = 30.0  # seconds a check may read


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A journal before anybody has opened it: when the database was changed (ns), bytes in its log,
    -1 without one.
    """

    changed: int
    log: int


def look_at(file: Path) -> FoundFile:
    """How the journal lies there. Raises OSError."""
    log = file.with_name(file.name + LOG)
    return FoundFile(changed_at(file), log.stat().st_size if log.exists() else -1)


def missing(left: Traces, found: FoundFile, *, good: int) -> Pair | None:
    """The loss, in a few words; None where nothing is. `good` is how many pages SQLite took
    from the log.
    """
    if (
        good >= left.pages or found.changed != left.changed
    ):  # another process may have moved them into the database
        return None
    if found.log <= 0:
        return LOG_GONE if found.log < 0 else LOG_EMPTIED
    return filled(LOG_CUT, good=good, pages=left.pages)


class SelfCheck:
    """SQLite's own check of a file, table by table, for as long as it may take."""

    def __init__(self, file: Path, *, longest: float = LONGEST) -> None:
        self._file = file
        self._longest = longest
        self._over = threading.Event()
        self._connection: sqlite3.Connection | None = None

    def run(self) -> str:
        """The damage, in SQLite's words; empty where nothing was found in the time there was."""
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
        """Enough; from any thread."""
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
