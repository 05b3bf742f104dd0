"""What an older version had reserved when it ended, in both databases."""

from __future__ import annotations

import pytest
from alembic.migration import MigrationContext
from alembic.operations import Operations
from sqlalchemy import select, text

from adapters.storage import unfinished
from adapters.storage.batches import EntryBatches
from adapters.storage.database import Database
from adapters.storage.migrations.versions import r0013_day_totals, r0014_reserved
from adapters.storage.tables import usage
from bot.domain import codec
from bot.domain.chat import Usage
from bot.domain.journal import Entry, UsageAdded, UsageReleased, UsageReserved
from tests.adapters.storage.entries import NOW, opening, put, read

OLDER = "INSERT INTO usage (turn_id, step, model, prompt, at) VALUES ('t1', :step, 'm', 9, :at)"
AHEAD = '{"turn_id":"t1","number":8,"model":"m","usage":{"prompt":9},"at":1700000000.0,"type":"usage_reserved"}'


def upgraded(database: Database, *, number: int) -> None:
    """The upgrade of a journal in which an older version had reserved something."""
    with database.connect() as connection, connection.begin():
        with Operations.context(MigrationContext.configure(connection)) as operations:
            operations.drop_column("usage", "reserved")
        connection.execute(text(OLDER), {"step": -number, "at": NOW})
        with Operations.context(MigrationContext.configure(connection)):
            r0014_reserved.upgrade()


def rows(database: Database) -> list[tuple[int, int]]:
    with database.reading() as connection:
        return [(row.prompt, row.completion) for row in connection.execute(select(usage))]


def test_it_follows_the_thirteenth() -> None:
    assert (r0014_reserved.revision, r0014_reserved.down_revision) == ("0014", r0013_day_totals.revision)


@pytest.mark.parametrize("number", [7, 8])
def test_a_request_that_an_older_version_had_reserved_is_not_counted_once_more(
    batches: EntryBatches, database: Database, number: int
) -> None:
    """Its numbers were of any parity."""
    batches.write(put(opening("t1"), opening("t2")))
    upgraded(database, number=number)
    one, other = read(database, unfinished.recover, NOW).turns
    assert (one.uncounted, other.uncounted) == (False, True)
    assert rows(database) == [(9, 0)]


@pytest.mark.parametrize(
    ("entry", "left"),
    [
        (UsageAdded(turn_id="t1", model="m", usage=Usage(30, 5, reserved=8), at=NOW), [(30, 5)]),
        (UsageReleased(turn_id="t1", number=8), []),
        (UsageReleased(turn_id="t1", number=9), [(9, 0)]),
        (UsageReleased(turn_id="t2", number=8), [(9, 0)]),
    ],
)
def test_what_it_took_takes_the_place_of_what_an_older_version_had_reserved(
    batches: EntryBatches, database: Database, entry: Entry, left: list[tuple[int, int]]
) -> None:
    """It was written ahead, or a worker of that version is at work still."""
    batches.write(put(opening("t1")))
    upgraded(database, number=8)
    batches.write(put(entry))
    assert rows(database) == left


def test_a_line_that_an_older_version_wrote_ahead_counts_for_its_turn(
    batches: EntryBatches, database: Database
) -> None:
    batches.write(put(opening("t1"), codec.read(UsageReserved, AHEAD)))
    (turn,) = read(database, unfinished.recover, NOW).turns
    assert not turn.uncounted
