"""What a version before revision 0014 had reserved when it ended, in both databases: its number is in the step of the
row, below 0.
"""

from __future__ import annotations

import pytest
from sqlalchemy import select, text

from adapters.storage.batches import EntryBatches
from adapters.storage.database import Database
from adapters.storage.queries import unfinished
from adapters.storage.tables import usage
from bot.core.journal import Entry, UsageAdded, UsageReleased
from frostagent.types.messages import Usage
from tests.adapters.storage.entries import NOW, opening, put, read

OLDER = "INSERT INTO usage (turn_id, step, model, prompt, at) VALUES ('t1', :step, 'm', 9, :at)"


def reserve(database: Database, *, number: int) -> None:
    with database.connect() as connection, connection.begin():
        connection.execute(text(OLDER), {"step": -number, "at": NOW})


def rows(database: Database) -> list[tuple[int, int]]:
    with database.reading() as connection:
        return [(row.prompt, row.completion) for row in connection.execute(select(usage))]


@pytest.mark.parametrize("number", [7, 8])
def test_a_request_that_an_older_version_had_reserved_is_not_counted_once_more(
    batches: EntryBatches, database: Database, number: int
) -> None:
    """Its numbers were of any parity."""
    batches.write(put(opening("t1"), opening("t2")))
    reserve(database, number=number)
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
    batches.write(put(opening("t1")))
    reserve(database, number=8)
    batches.write(put(entry))
    assert rows(database) == left
