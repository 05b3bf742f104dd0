"""Several workers on one journal: leases, the right to write a part of it, and the roster of
workers and free parts.

The advisory lock of `claim.py` lasts as long as its connection, so a frozen process would keep it
for ever. A lease expires unless it is renewed, and every transaction renews it. Its epoch rises
with each change of owner, and writes under an older epoch change nothing. Times are the server's.
Everything here blocks: for the writer's thread.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from secrets import token_hex
from typing import Any, Final

from msgspec import Struct
from sqlalchemy import Connection, create_engine, inspect, text
from sqlalchemy.exc import SQLAlchemyError

from adapters.storage.claim import CLAIM, LOCK_OBJECT, NAME, Away, JournalTaken
from adapters.storage.database import POSTGRES_OPTIONS, describe_error
from adapters.storage.url import place_of, read_url

SECONDS: Final = 4.0  # until a lease expires
RENEWALS: Final = 1.0  # seconds between two renewals without writes
ABANDONED: Final = 3000  # ms a transaction may be idle before the server ends its session

LEASES_TABLE = """
    CREATE TABLE IF NOT EXISTS leases (
    name text PRIMARY KEY, holder text NOT NULL, epoch bigint NOT NULL, until timestamptz NOT NULL)
"""
TAKE = """
    INSERT INTO leases (name, holder, epoch, until)
    VALUES (:name, :holder, 1, clock_timestamp() + make_interval(secs => :seconds))
    ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, epoch = leases.epoch + 1,
    until = excluded.until WHERE leases.until < clock_timestamp()
    RETURNING epoch
"""
RENEW = """
    UPDATE leases SET until = clock_timestamp() + make_interval(secs => %s)
    WHERE name = %s AND epoch = %s RETURNING pg_current_xact_id()::text
"""
GIVE_BACK = "UPDATE leases SET until = clock_timestamp() WHERE name = :name AND epoch = :epoch"
HOLDER = "SELECT holder FROM leases WHERE name = :name"
# Shared with others of a cluster, never with a bot outside of it.
TRY_SHARED = f"SELECT pg_try_advisory_lock_shared(:claim, {LOCK_OBJECT})"
CREATING = "SELECT pg_advisory_xact_lock(:claim)"
INTRODUCTION = """
    SELECT set_config('application_name', :name, false),
    set_config('idle_in_transaction_session_timeout', :abandoned, false)
"""


def name_of(partition: int) -> str:
    return f"partition {partition}"


@cache
def holder_of_process() -> str:
    """The name of this process as an owner of leases; random, because two containers may have the
    same host name and process id.
    """
    return f"{os.getpid()}.{token_hex(4)}@{socket.gethostname()}"[:NAME]


@dataclass(slots=True)
class Lease:
    """A lease that this process has or wants; `epoch` is 0 until it has it."""

    name: str = name_of(0)
    seconds: float = SECONDS
    renewals: float = RENEWALS
    holder: str = field(default_factory=holder_of_process)
    epoch: int = 0

    def take(self, connection: Connection, place: str) -> None:
        """Take or renew it. Raises JournalTaken if another has it, and the driver's errors."""
        with connection.begin():
            if not connection.scalar(text(TRY_SHARED), {"claim": CLAIM}):
                raise JournalTaken(place, "")
            settings = {"name": f"frostagent {self.holder}"[:NAME], "abandoned": str(ABANDONED)}
            connection.execute(text(INTRODUCTION), settings)
        with connection.begin():
            connection.execute(text(CREATING), {"claim": CLAIM})
            connection.execute(text(LEASES_TABLE))
            if self.epoch:
                self.renew(connection.connection.cursor(), place)
                return
            wanted = {"name": self.name, "holder": self.holder, "seconds": self.seconds}
            epoch = connection.scalar(text(TAKE), wanted)
            if epoch is None:
                holder = connection.scalar(text(HOLDER), {"name": self.name})
                raise JournalTaken(place, f" ({holder})")
        self.epoch = epoch

    def renew(self, cursor: Any, place: str) -> str:
        """Renew the lease in this cursor's transaction. Returns the transaction's number. Raises
        JournalTaken if another process has taken over: then the transaction must not be committed.
        """
        cursor.execute(RENEW, (self.seconds, self.name, self.epoch))
        if (row := cursor.fetchone()) is None:
            raise JournalTaken(place, " that took over")
        return str(row[0])

    def give_back(self, connection: Connection) -> None:
        """Let another process take it at once. Raises the driver's errors."""
        if self.epoch:
            with connection.begin():
                connection.execute(text(GIVE_BACK), {"name": self.name, "epoch": self.epoch})


WORKERS_TABLE: Final = """
    CREATE TABLE IF NOT EXISTS workers (
    holder text PRIMARY KEY, until timestamptz NOT NULL)
"""
SIGN: Final = """
    INSERT INTO workers (holder, until)
    VALUES (:holder, clock_timestamp() + make_interval(secs => :seconds))
    ON CONFLICT (holder) DO UPDATE SET until = excluded.until
"""
STRIKE: Final = "DELETE FROM workers WHERE holder = :holder OR until < now() - interval '1 hour'"
THERE: Final = "SELECT count(*) FROM workers WHERE until > clock_timestamp()"
HAD: Final = "SELECT name, holder FROM leases WHERE until > clock_timestamp()"


class Board(Struct, frozen=True):
    """The number of workers, this one included if it signs in, and each lease's owner by name."""

    workers: int
    had: dict[str, str]


def leases_of(connection: Connection) -> dict[str, str]:
    """The owner of each lease, as on a `Board`, for an observer. Raises the driver's errors."""
    return _had(connection) if inspect(connection).has_table("leases") else {}


def _had(connection: Connection) -> dict[str, str]:
    return {row.name: row.holder for row in connection.execute(text(HAD))}


class Roster:
    """A worker's entry, by its `holder` name, which expires like a lease."""

    def __init__(self, url: str, holder: str) -> None:
        self.holder = holder
        self._place = place_of(read_url(url))
        self._is_made = False
        self._engine = create_engine(
            read_url(url),
            connect_args=POSTGRES_OPTIONS,
            pool_pre_ping=True,
            pool_size=1,
            max_overflow=0,
            hide_parameters=True,
        )

    def look(self, *, signs: bool = True) -> Board:
        """Sign in for SECONDS, or sign out, and return the board. Raises Away."""
        with self._reached() as connection:
            signed = {"holder": self.holder, "seconds": SECONDS}
            connection.execute(text(SIGN if signs else STRIKE), signed)
            return Board(connection.scalar(text(THERE)) or 0, _had(connection))

    def leave(self) -> None:
        """Sign out. Raises Away."""
        try:
            with self._reached() as connection:
                connection.execute(text(STRIKE), {"holder": self.holder})
        finally:
            self.close()

    def close(self) -> None:
        self._engine.dispose()

    @contextmanager
    def _reached(self) -> Iterator[Connection]:
        try:
            with self._engine.begin() as connection:
                self._make(connection)
                yield connection
            self._is_made = True
        except (SQLAlchemyError, OSError) as error:
            self._is_made = False  # another database may be there afterwards
            raise Away(self._place, describe_error(error)) from error

    def _make(self, connection: Connection) -> None:
        if not self._is_made:
            connection.execute(text(CREATING), {"claim": CLAIM})
            connection.execute(text(LEASES_TABLE))
            connection.execute(text(WORKERS_TABLE))
