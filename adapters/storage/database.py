"""One database: opened, prepared, and put aside if damaged. Everything here blocks: threads only.

SQLite runs in WAL mode with synchronous=NORMAL: committed data survives the death of the process. A
power failure may lose the last commits, but never half of one.
"""

from __future__ import annotations

import logging
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from enum import Enum, auto
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from sqlalchemy import (
    URL,
    Connection,
    Engine,
    create_engine,
    create_mock_engine,
    event,
    inspect,
    select,
    text,
)
from sqlalchemy.exc import SQLAlchemyError

from adapters.storage import backup, baseline, claim, files
from adapters.storage.claim import describe_loss, inspect_file
from adapters.storage.notices import MEND, NOT_WHOLE
from adapters.storage.tables import REVISIONS, metadata, versions
from adapters.storage.url import SQLITE, VARIABLE, file_of, place_of, read_url
from bot.core.language import CATALOGUE, NotifyOwners, Phrase
from frostagent.types.errors import ConfigError, Problem

if TYPE_CHECKING:  # clusters only
    from adapters.storage.leases import Lease

logger = logging.getLogger(__name__)

Migrate: TypeAlias = Callable[[Connection], None]

BUSY = 0.8  # seconds SQLite waits for another process's lock
BUSY_MIGRATING = 60.0  # another process may be migrating
BUSY_BEGINNING = 5.0  # or creating the same file
READERS = 2
ASIDE = ".corrupt-"  # followed by the time
LOCK = 0x46726F7374  # "Frost": the number of our advisory lock on PostgreSQL

# Checkpoints of 16 MB instead of 4 MB save 4 ms in the slowest hundredth of commits (measured).
PRAGMAS = ("synchronous=NORMAL", "wal_autocheckpoint=4000", "secure_delete=ON")

# A dead connection is noticed within seconds, even if the peer is silent.
POSTGRES_OPTIONS = {
    "connect_timeout": 3,
    "tcp_user_timeout": 5000,
    "keepalives_idle": 10,
    "keepalives_interval": 3,
    "keepalives_count": 2,
    "application_name": "frostagent",
}


T = TypeVar("T")


FOREIGN = Phrase(
    "是别的程序的数据库：里面的表 {table} 不是我们的",
    "is another program's database: its table {table} is not ours",
)
NAME_ANOTHER = Phrase("换一个数据库", "Name another database")
NEWER = Phrase(
    "是更新版本的机器人的数据库（它的结构是 {schema}，我们的是 {ours}）",
    "was written by a newer version of the bot (its schema is {schema}, ours {ours})",
)
START_THAT = Phrase(
    "启动那个版本，或者换一个数据库；它升级之前留了一份名为 .bak- 的副本",
    "Start that version, or name another database; before migrating it made a copy named .bak-",
)
CATALOGUE.register(__name__, globals())


class Database:
    """The database of a STORE_URL. Raises ConfigError for one that cannot be used.

    `migrate` updates an older schema inside the connection's transaction. The `owner` of the
    journal locks it first, by a `lease` if given (PostgreSQL). `tell` receives the
    alert for the bot's owners if the previous process was killed.
    """

    def __init__(
        self,
        url: str,
        *,
        migrate: Migrate,
        owner: bool = False,
        lease: Lease | None = None,
        tell: NotifyOwners = lambda _: None,
    ) -> None:
        self.url = read_url(url)
        file = file_of(self.url)
        # as SQLite names the files beside it
        self.file = None if file is None else file.resolve()
        self.place = place_of(self.url)
        self._migrate = migrate
        self._tell = tell
        self._is_owner = owner
        self._lease = None if self.file is not None else lease
        self._claim = claim.FileClaim(self.file) if owner and self.file is not None else None
        self.was_killed = False  # whether the previous owner was killed
        self._writing = _engine(self.url, begin="BEGIN IMMEDIATE", pool_size=1)
        self._reading = _engine(self.url, begin="BEGIN", pool_size=READERS + 1)
        event.listen(self._reading, "connect", _only_reads)
        self.ready = False  # whether it can be read

    @property
    def dialect(self) -> Any:
        """SQLAlchemy's dialect, for compiling statements."""
        return self._writing.dialect

    @property
    def is_leased(self) -> bool:
        """Whether other processes may take it over."""
        return self._lease is not None

    @property
    def is_sqlite(self) -> bool:
        return self.file is not None

    def connect(self) -> Connection:
        """Return a connection for writing, with the schema up to date.

        Raises ConfigError for a schema that is newer, foreign or before the baseline, JournalTaken
        for a journal of another process, and the driver's errors.
        """
        # After a failure, idle connections may belong to a server or file that is gone.
        self.close()
        if self.file is not None:
            baseline.refuse_older_file(self.file)
            files.make_folder(self.file.parent)
        if self._claim is None or self.file is None:
            if self.file is not None:
                backup.refuse_unfinished(self.file)
            self._prepare()
        else:
            self._prepare_claimed(self._claim, self.file)
        self.ready = True
        connection = self._writing.connect()
        try:
            _try_to_write(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection that sees one state of everything committed."""
        pool = self._reading.pool
        try:
            with self._reading.connect() as connection:
                yield connection
        finally:
            if pool is not self._reading.pool:
                pool.dispose()  # closed meanwhile: the returned connection would stay open

    def close(self) -> None:
        """Close all idle connections."""
        self._writing.dispose()
        self._reading.dispose()

    def release(self) -> None:
        """Release the journal after a proper end: everything is written, or reported as lost."""
        if self._claim is not None:
            self._claim.release(whole=self.ready)
        if self._lease is not None and self.ready:
            with suppress(SQLAlchemyError), self._writing.connect() as connection:
                self._lease.give_back(connection)
            self._writing.dispose()

    def fence(self, cursor: Any) -> str:
        """Call it before a commit: raises JournalTaken if another process has taken over. Returns
        the number of the transaction, with a lease.
        """
        return "" if self._lease is None else self._lease.renew(cursor, self.place)

    def note(self) -> None:
        """Record that something was written, for the next owner if this process is killed."""
        if self._claim is not None:
            self._claim.note()

    @property
    def is_lost(self) -> bool:
        """Whether the lock's file was removed, so that the journal must be locked again."""
        return self._claim is not None and self._claim.was_removed

    def holder(self) -> str | None:
        """Return the process that has the journal, for people: empty if unknown, None if there is
        none.

        Raises the driver's errors.
        """
        if self.file is not None:
            return claim.holder_of(self.file)
        with self.reading() as connection:
            return claim.holder_of_session(connection)

    def put_aside(self, stamp: str) -> str:
        """Move a damaged SQLite file and the files that belong to it away. Returns the new path."""
        self.close()
        self.ready = False
        aside = f"{self.file}{ASIDE}{stamp}"
        for suffix in ("", *files.BESIDE):
            part = Path(f"{self.file}{suffix}")
            if part.exists():
                part.replace(f"{aside}{suffix}")
        return aside

    def copies(self) -> list[Path]:
        """Older copies beside an SQLite database: backups, damaged files, a folder per restore."""
        if self.file is None:
            return []
        name = self.file.name
        beginnings = f"{name}.bak-", f"{name}{ASIDE}", f"{name}{backup.ASIDE}"
        return sorted(
            file for file in self.file.parent.iterdir() if file.name.startswith(beginnings)
        )

    def was_put_aside(self, since: float) -> bool:
        """Whether a damaged file was written since then; its content is unknown."""
        aside = (file for file in self.copies() if ASIDE in file.name)
        return any(file.stat().st_mtime >= since for file in aside)

    def restored_at(self) -> float:
        """Time of the latest restore (seconds since 1970); 0 if there was none."""
        aside = (file for file in self.copies() if backup.ASIDE in file.name)
        return max((file.stat().st_mtime for file in aside), default=0.0)

    # --- preparing --------------------------------------------------------------------------------

    def _prepare_claimed(self, ours: claim.FileClaim, file: Path) -> None:
        """Prepare a locked SQLite file; if its last owner was killed, determine the damage."""
        left = ours.take()
        backup.complete(file)
        found = None if left is None else inspect_file(file)
        beside = (Path(f"{file}{suffix}") for suffix in (*files.BESIDE, claim.SUFFIX))
        if changed := files.make_private([file, *self.copies(), *beside]):
            logger.info(
                "only their owner can read these now: %s", ", ".join(path.name for path in changed)
            )
        self._prepare()
        good = ours.follow()
        if left is not None and found is not None:
            self.was_killed = True
            if what := describe_loss(left, found, good=good):
                self._tell(NOT_WHOLE.fill(file=file, what=what, fix=MEND))

    def _prepare(self) -> None:
        """Create or update the schema, under a lock that other processes respect."""
        if self.file is not None:
            files.make_file(self.file)
        with self.reading() as connection:
            current = checked_revision(connection, self.file) == REVISIONS[-1]
        with self._writing.connect() as connection, _waiting_for_long(connection):
            if self._lease is not None:
                self._lease.take(connection, self.place)
            elif self._is_owner and not self.is_sqlite:
                claim.take_session(connection, self.place)
            if not current:
                with connection.begin():
                    if not self.is_sqlite:
                        connection.execute(
                            text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": LOCK}
                        )
                    _bring_up_to_date(connection, self.file, self._migrate)
            if self.is_sqlite:
                _write_ahead(connection.connection.driver_connection)


@cache
def _schema(dialect: str) -> tuple[str, ...]:
    """The statements that create all tables and indexes, compiled once per process."""
    made: list[str] = []

    def note(statement: Any, *_: object, **__: object) -> None:
        made.append(str(statement.compile(dialect=engine.dialect)))

    engine = create_mock_engine(f"{dialect}://", note)
    metadata.create_all(engine, checkfirst=False)
    versions.create(engine, checkfirst=False)
    return tuple(made)


def _bring_up_to_date(connection: Connection, file: Path | None, migrate: Migrate) -> None:
    # Check again: another process may have done it while this one waited.
    match checked_revision(connection, file):
        case None:
            _refuse_a_stranger(connection)
            for statement in _schema(connection.dialect.name):
                connection.exec_driver_sql(statement)
            connection.execute(versions.insert(), {"version_num": REVISIONS[-1]})
        case revision if revision == REVISIONS[-1]:
            pass
        case revision if revision in REVISIONS:
            if file is not None:  # PostgreSQL has its own backup tools
                _back_up(file, revision)
            migrate(connection)
        case revision:
            what = NEWER.fill(schema=revision, ours=REVISIONS[-1])
            raise ConfigError(Problem(VARIABLE, what, START_THAT.fill()))


def _back_up(file: Path, revision: str) -> None:
    """Copy the file as it was."""
    copy = file.with_name(f"{file.name}.bak-{revision}")
    unfinished = copy.with_name(copy.name + ".unfinished")
    files.make_file(unfinished)
    source, target = sqlite3.connect(file), sqlite3.connect(unfinished)
    try:
        source.backup(target)
    finally:
        source.close()
        target.close()
    unfinished.replace(copy)


def _engine(url: URL, *, begin: str, pool_size: int) -> Engine:
    common: dict[str, Any] = {
        "pool_size": pool_size,
        "max_overflow": 0,
        "pool_timeout": 5,
        "hide_parameters": True,
    }
    if url.drivername != SQLITE:
        # A pooled connection may have died with the server, so it is tested before use.
        return create_engine(url, connect_args=POSTGRES_OPTIONS, pool_pre_ping=True, **common)
    # sqlite3 looks up an adapter for these types first, which is most of the cost of binding.
    sqlite3.register_adapter(type(None), {None: None}.get)
    sqlite3.register_adapter(bool, int)
    engine = create_engine(url, connect_args={"timeout": BUSY}, **common)

    @event.listens_for(engine, "connect")
    def connected(connection: Any, _record: Any) -> None:
        # We issue BEGIN ourselves: sqlite3 would do it late and lose the lock's position.
        connection.isolation_level = None
        try:
            for pragma in PRAGMAS:
                connection.execute(f"PRAGMA {pragma}").close()
        except BaseException:  # the pool does not know the connection yet, and would leave it open
            connection.close()
            raise

    @event.listens_for(engine, "begin")
    def begun(connection: Connection) -> None:
        connection.exec_driver_sql(begin)

    return engine


def _only_reads(connection: Any, _record: Any) -> None:
    """Make the connection read-only."""
    if isinstance(connection, sqlite3.Connection):
        connection.execute("PRAGMA query_only=ON").close()
    else:
        connection.read_only = True


@contextmanager
def _waiting_for_long(connection: Connection) -> Iterator[None]:
    """Within the block, wait as long for another process's lock as a migration may take."""
    if connection.dialect.name != "sqlite":
        yield
        return
    driver: Any = connection.connection.driver_connection
    driver.execute(f"PRAGMA busy_timeout={BUSY_MIGRATING * 1000:.0f}").close()
    try:
        yield
    finally:
        driver.execute(f"PRAGMA busy_timeout={BUSY * 1000:.0f}").close()


def _try_to_write(connection: Connection) -> None:
    """Raise the driver's error now if the database is read-only, as on a read-only disk."""
    with connection.begin() as transaction:
        connection.execute(versions.update().values(version_num=versions.c.version_num))
        transaction.rollback()


def _write_ahead(driver: Any) -> None:
    """Switch the file to WAL for good. SQLite does not wait for locks here, so this does."""
    deadline = time.monotonic() + BUSY_BEGINNING
    while True:
        try:
            driver.execute("PRAGMA journal_mode=WAL").close()
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.02)
        else:
            return


def checked_revision(connection: Connection, file: Path | None) -> str | None:
    """Return the schema's revision; None if there is none of ours. Raises OlderJournal for a
    journal that this version does not read.
    """
    if not inspect(connection).has_table(versions.name):
        return None
    revision = connection.scalar(select(versions.c.version_num))
    baseline.refuse_older(
        lambda statement: connection.execute(text(statement)).all(), revision, file
    )
    return revision


def _refuse_a_stranger(connection: Connection) -> None:
    taken = sorted(set(inspect(connection).get_table_names()) & set(metadata.tables))
    if taken:
        raise ConfigError(Problem(VARIABLE, FOREIGN.fill(table=taken[0]), NAME_ANOTHER.fill()))


# --- what an error means --------------------------------------------------------------------------

# Errors are recognized by their class names, which PEP 249 gives every driver, so that no driver
# has to be installed.

SQLITE_CORRUPT = 11  # "database disk image is malformed"
SQLITE_NOTADB = 26  # "file is not a database"

OF_THE_VALUES = {"DataError", "IntegrityError"}
OF_ONE_VALUE = (
    "binding parameter",
    "cannot adapt",
)  # the drivers' words for a value of an unknown type
DRIVERS = {"sqlite3", "psycopg", "sqlalchemy"}
CODES = {"40001", "40P01"}  # serialization_failure, deadlock_detected
TRIES = 5


class Unusable(Exception):
    """The database cannot be used at the moment; raised by us, not by a driver."""


class Blame(Enum):
    """The cause of a failed write: the ENTRY (it can never be written), DAMAGE to the file, or an
    OUTAGE that may pass.
    """

    ENTRY = auto()
    DAMAGE = auto()
    OUTAGE = auto()


def fault(error: Exception) -> Blame:
    """Return the cause of the failed write that raised this error."""
    cause = _original(error)
    if getattr(cause, "sqlite_errorcode", 0) & 0xFF in {SQLITE_CORRUPT, SQLITE_NOTADB}:
        return Blame.DAMAGE
    if {kind.__name__ for kind in type(cause).__mro__} & OF_THE_VALUES:
        return Blame.ENTRY
    if isinstance(cause, OSError | MemoryError | Unusable | ConfigError) or _is_of_a_driver(cause):
        return Blame.ENTRY if any(blame in str(cause) for blame in OF_ONE_VALUE) else Blame.OUTAGE
    return (
        Blame.ENTRY
    )  # a value no column can hold: OverflowError, UnicodeEncodeError, ValueError …


def describe_error(error: Exception) -> str:
    """The error in one line for the operator, without the statement and its values."""
    lines = str(_original(error)).strip().splitlines()
    return lines[0][:300] if lines else type(error).__name__


def _original(error: Exception) -> BaseException:
    """The driver's error inside SQLAlchemy's."""
    return getattr(error, "orig", None) or error


def _is_of_a_driver(error: BaseException) -> bool:
    return any(kind.__module__.partition(".")[0] in DRIVERS for kind in type(error).__mro__)


def is_conflict(error: Exception) -> bool:
    """Whether the server aborted the transaction in favour of another one."""
    return getattr(_original(error), "sqlstate", None) in CODES


def retry_conflicts(transaction: Callable[[], T]) -> T:
    """Run a transaction, at most five times on conflicts. Raises what it raises."""
    for _ in range(TRIES - 1):
        try:
            return transaction()
        except Exception as error:
            if not is_conflict(error):
                raise
            logger.debug("a transaction is done again", exc_info=True)
    return transaction()
