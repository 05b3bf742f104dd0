"""The right to write into a part of a journal that several workers could have: a row that runs out.

The advisory lock of `claim.py` lasts as long as its connection does, so a process that is frozen
keeps it for ever. A lease runs out unless it is renewed, and every transaction renews it: its epoch
rises at each change of hands, and whoever still writes under an older one changes nothing. Times
are the server's own. Everything here blocks: the writer's thread.
"""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass, field
from functools import cache
from secrets import token_hex
from typing import Any, Final

from sqlalchemy import Connection, text

from adapters.storage.claim import CLAIM, LOCK_OBJECT, NAME, JournalTaken

SECONDS: Final = 4.0  # how long it lasts without being renewed
RENEWALS: Final = 1.0  # seconds between two renewals where nothing is written
ABANDONED: Final = 3000  # ms in which a transaction goes on, or the server ends its session

TABLE = """
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
# Together with others of a cluster, never with a bot that is a process of its own.
TRY_SHARED = f"SELECT pg_try_advisory_lock_shared(:claim, {LOCK_OBJECT})"
CREATING = "SELECT pg_advisory_xact_lock(:claim)"
INTRODUCTION = """
    SELECT set_config('application_name', :name, false),
    set_config('idle_in_transaction_session_timeout', :abandoned, false)
"""


def name_of(partition: int) -> str:
    """The name of the lease on a partition."""
    return f"partition {partition}"


@cache
def holder_of_process() -> str:
    """The name of this process, as somebody who holds leases: two containers may have the same
    host name and number, so chance tells them apart.
    """
    return f"{os.getpid()}.{token_hex(4)}@{socket.gethostname()}"[:NAME]


@dataclass(slots=True)
class Lease:
    """A lease of this process, or one that it would like to have; `epoch` is 0 until then."""

    name: str = name_of(0)
    seconds: float = SECONDS
    renewals: float = RENEWALS
    holder: str = field(default_factory=holder_of_process)
    epoch: int = 0

    def take(self, connection: Connection, place: str) -> None:
        """Have it, or have it still. Raises Taken where another process does, and the driver's
        errors.
        """
        with connection.begin():
            if not connection.scalar(text(TRY_SHARED), {"claim": CLAIM}):
                raise JournalTaken(place, "")
            settings = {"name": f"frostagent {self.holder}"[:NAME], "abandoned": str(ABANDONED)}
            connection.execute(text(INTRODUCTION), settings)
        with connection.begin():
            connection.execute(text(CREATING), {"claim": CLAIM})
            connection.execute(text(TABLE))
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
        """Have it for as long again, in the transaction of this cursor; the number of that. Raises
        Taken where another process has taken over: then nothing of it is to be committed.
        """
        cursor.execute(RENEW, (self.seconds, self.name, self.epoch))
        if (row := cursor.fetchone()) is None:
            raise JournalTaken(place, " that took over")
        return str(row[0])

    def give_back(self, connection: Connection) -> None:
        """Let another process have it at once. Raises the driver's errors."""
        if self.epoch:
            with connection.begin():
                connection.execute(text(GIVE_BACK), {"name": self.name, "epoch": self.epoch})
