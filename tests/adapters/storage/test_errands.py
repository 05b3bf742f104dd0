"""What errands used has no turn, and is counted, added up and erased all the same."""

from __future__ import annotations

from msgspec.structs import replace
from sqlalchemy import select

from adapters.storage.batches import EntryBatches, Put
from adapters.storage.database import Database
from adapters.storage.erasure import erase_group, erase_user
from adapters.storage.queries.sums import spent, taken
from adapters.storage.retention import DAY, Retention, add_up
from adapters.storage.tables import day_usage, usage
from bot.core.calendar_days import midnight
from bot.core.journal import ERRAND, UsageAdded
from bot.core.query_results import SpentSum
from frostagent.types.messages import Usage
from tests.adapters.storage.entries import NOW
from tests.fakes import GROUP

USED = UsageAdded(turn_id=f"{ERRAND}t1", model="small", usage=Usage(100, 10), at=NOW, payer=(GROUP, 777))


def written(batches: EntryBatches, *ages: float) -> None:
    """An errand of so many days ago each."""
    batches.write([Put(replace(USED, turn_id=f"{ERRAND}{age}", at=NOW - age * DAY), NOW - age * DAY) for age in ages])


def swept(batches: EntryBatches, keep: Retention) -> None:
    while batches.run(lambda connection: keep.sweep(connection, now=NOW, surplus=0.0)):
        pass


def rows(database: Database) -> list[tuple[str, int]]:
    with database.reading() as connection:
        return [tuple(row) for row in connection.execute(select(usage.c.turn_id, usage.c.asker).order_by(usage.c.id))]


def test_an_errand_counts_to_who_asked_for_days(database: Database, batches: EntryBatches) -> None:
    written(batches, 3, 0)
    swept(batches, Retention(90, 0))
    with database.reading() as connection:
        assert spent(connection, NOW - 7 * DAY, asker=777).requests == 2
        assert spent(connection, NOW - 7 * DAY, where=GROUP).prompt == 200
        assert taken(connection, midnight(NOW), NOW) == (SpentSum(GROUP, 777, 110, 0.0),)


def test_a_day_that_is_over_is_added_up_as_theirs(database: Database, batches: EntryBatches) -> None:
    written(batches, 3)
    batches.run(lambda connection: add_up(connection, now=NOW))
    with database.reading() as connection:
        assert connection.execute(select(day_usage.c.asker, day_usage.c.requests)).all() == [(777, 1)]


def test_it_is_kept_no_longer_than_all_else(database: Database, batches: EntryBatches) -> None:
    written(batches, 91, 89)
    swept(batches, Retention(90, 0))
    assert rows(database) == [(f"{ERRAND}89", 777)]


def test_of_whoever_is_forgotten_only_what_they_took_today_stays_until_the_day_is_over(
    database: Database, batches: EntryBatches
) -> None:
    written(batches, 3, 0)
    batches.run(lambda connection: erase_user(connection, 777, now=NOW))
    assert rows(database) == [("erased", 777)]
    batches.run(lambda connection: Retention(90, 0).sweep(connection, now=NOW + 2 * DAY, surplus=0.0))
    assert rows(database) == []


def test_so_it_is_for_a_group(database: Database, batches: EntryBatches) -> None:
    written(batches, 3, 0)
    batches.run(lambda connection: erase_group(connection, GROUP.session_id, now=NOW))
    assert rows(database) == [("erased", 777)]
