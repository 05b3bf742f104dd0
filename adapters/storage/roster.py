"""Which workers there are, and which shares of the accounts nobody has. Everything here blocks:
threads only.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from msgspec import Struct
from sqlalchemy import Connection, create_engine, inspect, text
from sqlalchemy.exc import SQLAlchemyError

from adapters.storage import lease
from adapters.storage.claim import CLAIM, Away
from adapters.storage.database import POSTGRES_OPTIONS
from adapters.storage.failures import words
from adapters.storage.url import place_of, read_url

TABLE: Final = """
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
    """How many workers there are, oneself included where one `signs`, and who has what, by the name
    of its lease.
    """

    workers: int
    had: dict[str, str]


def leases_of(connection: Connection) -> dict[str, str]:
    """Who has what, as on a `Board`, for somebody who only looks. Raises the driver's errors."""
    return _had(connection) if inspect(connection).has_table("leases") else {}


def _had(connection: Connection) -> dict[str, str]:
    return {row.name: row.holder for row in connection.execute(text(HAD))}


class Roster:
    """The line of a worker on it, its `holder`, which lasts as long as a lease does."""

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
        """Be there for so long, and see who else is; or only see, and be there for nobody. Raises
        Away.
        """
        with self._reached() as connection:
            signed = {"holder": self.holder, "seconds": lease.SECONDS}
            connection.execute(text(SIGN if signs else STRIKE), signed)
            return Board(connection.scalar(text(THERE)) or 0, _had(connection))

    def leave(self) -> None:
        """Be there no longer. Raises Away."""
        try:
            with self._reached() as connection:
                connection.execute(text(STRIKE), {"holder": self.holder})
        finally:
            self.close()

    def close(self) -> None:
        """Close the connection."""
        self._engine.dispose()

    @contextmanager
    def _reached(self) -> Iterator[Connection]:
        try:
            with self._engine.begin() as connection:
                self._make(connection)
                yield connection
            self._is_made = True
        except (SQLAlchemyError, OSError) as error:
            self._is_made = False  # another database may be there when it is back
            raise Away(self._place, words(error)) from error

    def _make(self, connection: Connection) -> None:
        if not self._is_made:
            connection.execute(text(lease.CREATING), {"claim": CLAIM})
            connection.execute(text(lease.TABLE))
            connection.execute(text(TABLE))
