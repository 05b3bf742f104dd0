"""The sums of days that are over are those of their rows, whatever becomes of the rows."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec.structs import replace
from sqlalchemy import select

from adapters.storage.batches import EntryBatches
from adapters.storage.database import Database
from adapters.storage.erasure import forget_group, forget_user
from adapters.storage.queries.sums import costs, day, spent, taken
from adapters.storage.retention import LATE, LONGEST_DAY, add_up
from adapters.storage.tables import PAYER, day_usage, usage
from bot.core.calendar_days import midnight
from bot.core.journal import UsageAdded
from bot.core.query_results import SpentSum
from frostagent.types.messages import Usage, UserMessage
from tests.adapters.storage.entries import NOW, closing, opening, put
from tests.adapters.storage.test_books import ELSEWHERE
from tests.fakes import GROUP, said

USER = 12345

NOON_OF_SUNDAY = datetime(2026, 3, 8, 16, tzinfo=UTC).timestamp()

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


def test_the_eve_of_a_day_without_midnight_lasts_until_that_day_begins(
    batches: EntryBatches, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In Havana on 8 March 2026 one o'clock follows 23:59:59."""
    try:
        monkeypatch.setenv("TZ", "America/Havana")
        time.tzset()
        begins = midnight(NOON_OF_SUNDAY)
        saturday = midnight(begins - 1)
        batches.write(put(opening("a"), took("a", begins - 1800), took("a", begins)))
        with database.reading() as connection:
            told = costs(connection, saturday, "day")
        assert [(float(one.name), one.usage.requests) for one in told] == [(saturday, 1), (begins, 1)]
        assert close(batches, NOON_OF_SUNDAY + 86_400) == 2
        assert [row[0] for row in sums(database)] == [saturday, begins]
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize("forget", [forget_user, forget_group])
def test_what_a_run_takes_that_was_erased_before_its_first_request_is_still_whoever_asked(
    batches: EntryBatches, database: Database, forget: Callable[..., dict[str, int]]
) -> None:
    """Also where the turn is another's who was told of them, or nobody's; and no row counts as a request."""
    told = replace(opening("t-told", said("?", user=778)), user=UserMessage(f"[群聊记录]\n某({USER}): x"))
    uncalled = replace(opening("t-uncalled", said("!", user=USER)), uncalled=True)
    stays = opening("t-stays", said("?", user=779, where=ELSEWHERE))
    batches.write(put(opening("t-own", said("?", user=USER)), told, uncalled, stays, took("t-stays", NOW)))
    with database.reading() as connection:
        before = set(taken(connection, NOW - 1, NOW)), spent(connection, NOW - 1, None, None)
    batches.close()
    whom = USER if forget is forget_user else GROUP.session_id
    assert forget(database, whom, now=lambda: NOW)["usage"] == 0
    with database.reading() as connection:
        sums = {one for one in taken(connection, NOW - 1, NOW) if one.tokens or one.cost}
        assert (sums, spent(connection, NOW - 1, None, None)) == before
        assert [row.usage.requests for row in costs(connection, NOW - 1, "asker")] == [before[1].requests]
        assert [row.usage.requests for row in costs(connection, NOW - 1, "day")] == [before[1].requests]
        assert sum(used.requests for _, used in day(connection, NOW - 1, NOW + 1, None).models) == before[1].requests
        assert set(connection.scalars(select(usage.c.turn_id).where(usage.c.step == PAYER))) == {
            "t-own",
            "t-told",
            "t-uncalled",
        }
    batches.write(put(*(took(one, NOW) for one in ("t-own", "t-told", "t-uncalled", "t-stays")), closing(stays)))
    with database.reading() as connection:
        after = {one for one in taken(connection, NOW - 1, NOW) if one.tokens or one.cost}
        own, other, nobody = (SpentSum(GROUP, who, 15, 0.5) for who in (USER, 778, 0))
        assert {own, other, nobody, SpentSum(ELSEWHERE, 779, 30, 1.0)} <= after
    assert batches.run(lambda connection: add_up(connection, now=NOW + LONGEST_DAY + 86_400))
    with database.reading() as connection:
        assert set(connection.scalars(select(day_usage.c.model))) == {"demo"}
