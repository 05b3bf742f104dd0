"""The sums of days that are over are those of their rows, whatever becomes of the rows."""

from __future__ import annotations

from typing import Any

from sqlalchemy import select

from adapters.storage.batches import EntryBatches
from adapters.storage.closed_days import LATE, add_up, midnight
from adapters.storage.database import Database
from adapters.storage.erasure import forget_user
from adapters.storage.tables import day_usage
from bot.domain.chat import Usage
from bot.domain.journal import UsageAdded
from tests.adapters.storage.entries import NOW, opening, put
from tests.fakes import GROUP, said

TODAY = midnight(NOW)
TUESDAY, MONDAY, SUNDAY = (midnight(NOW, later=-days) for days in (1, 2, 3))


def took(turn_id: str, at: float, cost: float | None = 0.5) -> UsageAdded:
    return UsageAdded(turn_id=turn_id, model="demo", usage=Usage(10, 5, 3, 1, cost), at=at)


def sums(database: Database) -> list[tuple[Any, ...]]:
    """Day, place, person, requests, prompt, completion, cached, unpriced, cost."""
    names = ["day", "conversation", "asker", "requests", "prompt", "completion", "cached", "unpriced", "cost"]
    with database.reading() as connection:
        query = select(*(day_usage.c[name] for name in names)).order_by(day_usage.c.day, day_usage.c.asker)
        return [tuple(row) for row in connection.execute(query)]


def close(batches: EntryBatches, now: float) -> int:
    """How many days were added up."""
    count = 0
    while batches.run(lambda connection: add_up(connection, now=now)):
        count += 1
    return count


def test_each_day_that_is_over_is_added_up_once(batches: EntryBatches, database: Database) -> None:
    batches.write(put(opening("a"), opening("b", said("?", user=888, where=GROUP))))
    batches.write(put(took("a", SUNDAY), took("a", MONDAY - 1, None), took("b", MONDAY - 1)))
    batches.write(put(took("b", TUESDAY + 1), took("a", TODAY), took("gone", TUESDAY)))
    assert close(batches, TODAY + LATE) == 2  # nothing was used on Monday
    sunday = [
        (SUNDAY, str(GROUP), 777, 2, 20, 10, 6, 1, 0.5),
        (SUNDAY, str(GROUP), 888, 1, 10, 5, 3, 0, 0.5),
    ]
    nobodys = (TUESDAY, "", 0, 1, 10, 5, 3, 0, 0.5)
    assert sums(database) == [*sunday, nobodys, (TUESDAY, str(GROUP), 888, 1, 10, 5, 3, 0, 0.5)]
    assert close(batches, TODAY + LATE) == 0
    batches.close()
    forget_user(database, 888)
    assert sums(database) == [(SUNDAY, "", 0, *sunday[1][3:]), sunday[0], nobodys, nobodys]


def test_a_day_is_over_when_what_was_put_late_is_written(batches: EntryBatches, database: Database) -> None:
    batches.write(put(opening("a"), took("a", TUESDAY)))
    assert close(batches, TODAY + LATE - 1) == 0
    assert close(batches, TODAY + LATE) == 1
