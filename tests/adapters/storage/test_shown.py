"""What the console reads: rows by keyset, a turn in full, sums; on both databases."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from msgspec.structs import replace
from sqlalchemy import event

from adapters.storage import shown
from adapters.storage.batches import EntryBatches
from adapters.storage.closed_days import LATE, add_up, midnight
from adapters.storage.database import Database
from adapters.storage.shown import SqlShown, costs, rows
from bot.domain.books import UsageSum
from bot.domain.chat import Usage
from bot.domain.journal import Entry, Judged, MessageObserved, UsageAdded
from bot.domain.run import Stop
from bot.domain.shown import ROWS, UNANSWERED, CostSum, TurnQuery
from tests.adapters.storage.entries import NOW, began, closing, heard, opening, put, read, step
from tests.adapters.storage.test_books import ELSEWHERE, whole, write
from tests.fakes import GROUP, said


def silent(message_id: str, reason: str = "its sender asks too often", user: int = 888) -> list[Entry]:
    """Somebody asked, and was not answered."""
    message = said("hello?", message_id=message_id, user=user)
    judged = Judged(conversation=GROUP, message_id=message_id, sender=user, wakes=False, reason=reason)
    return [MessageObserved(message, overheard=True), judged]


def asked(turn_id: str, at: float, *, stop: Stop = Stop.ANSWERED, error: str = "", **more: Any) -> list[Entry]:
    opened = replace(opening(turn_id, said(f"question {turn_id}", message_id=turn_id, **more)), at=at)
    return [opened, step(turn_id), replace(closing(opened), stop=stop, error=error)]


def test_rows_are_turns_and_what_nobody_answered_the_latest_first(batches: EntryBatches, database: Database) -> None:
    write(batches, *asked("a", NOW - 5), *silent("s1"), *asked("b", NOW + 5, stop=Stop.FAILED, error="auth: no"))
    write(batches, *silent("s2"), Judged(conversation=GROUP, message_id="s2", sender=888, wakes=True, reason="quote"))
    found = read(database, rows, TurnQuery())
    assert [(one.turn_id, one.outcome, one.text) for one in found.rows] == [
        ("b", "failed", "question b"),
        ("", UNANSWERED, "hello?"),
        ("a", "answered", "question a"),
    ]
    assert found.next is None
    failed, unanswered, _ = found.rows
    assert (failed.error, failed.seconds, failed.usage) == ("auth: no", 1.0, UsageSum(1, 10, 3, 5, 0.25, 0))
    assert (unanswered.message_id, unanswered.asker, unanswered.reason) == ("s1", 888, "its sender asks too often")


@pytest.mark.parametrize(
    ("query", "found"),
    [
        (TurnQuery(where=str(ELSEWHERE)), ["c"]),
        (TurnQuery(asker=888), ["s1"]),
        (TurnQuery(outcome="failed"), ["b"]),
        (TurnQuery(outcome=UNANSWERED), ["s1"]),
        (TurnQuery(tool="get_weather"), ["t1"]),
        (TurnQuery(model="demo", where=str(ELSEWHERE)), ["c"]),
        (TurnQuery(model="other"), []),
    ],
)
def test_rows_can_be_filtered(batches: EntryBatches, database: Database, query: TurnQuery, found: list[str]) -> None:
    write(batches, *asked("b", NOW, stop=Stop.FAILED, error="x"), *asked("c", NOW, where=ELSEWHERE))
    write(batches, *whole(), *silent("s1"))
    assert [one.turn_id or one.message_id for one in read(database, rows, query).rows] == found


def test_pages_go_on_where_the_last_one_ended_and_no_row_is_passed_over(
    batches: EntryBatches, database: Database
) -> None:
    for number in range(ROWS):
        batches.write(put(*asked(f"t{number}", NOW + number), at=NOW + number))
        batches.write(put(*silent(f"s{number}"), at=NOW + number))
    first = read(database, rows, TurnQuery())
    assert first.next is not None
    turn, verdict = first.next
    second = read(database, rows, TurnQuery(turn=turn, verdict=verdict))
    told = [one.turn_id or one.message_id for one in (*first.rows, *second.rows)]
    assert len(first.rows) == ROWS
    assert len(told) == len(set(told)) == 2 * ROWS
    assert second.next is None


def test_no_page_walks_over_all_rows(batches: EntryBatches, database: Database) -> None:
    if database.dialect.name != "sqlite":
        pytest.skip("SQLite says how it goes about a query")
    write(batches, *whole())
    statements: list[tuple[str, Any]] = []
    with database.reading() as connection:
        event.listen(
            connection, "before_cursor_execute", lambda _c, _k, sql, values, *_: statements.append((sql, values))
        )
        for query in (TurnQuery(), TurnQuery(where=str(GROUP), turn=9, verdict=9), TurnQuery(outcome="failed")):
            rows(connection, query)
        shown._trace(connection, "t1")
        plans = [
            (sql, str(step[3]))
            for sql, values in list(statements)
            for step in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {sql}", values)
        ]
    # The latest turns and verdicts are read backwards until there are enough; runs in error are few.
    walks = {step for _, step in plans if step.startswith("SCAN")}
    walks -= {"SCAN turns", "SCAN verdicts", "SCAN CONSTANT ROW", "SCAN runs USING INDEX runs_in_error"}
    walks = {step for step in walks if "subquery" not in step}
    assert not walks
    first = [sql for sql, _ in statements[:2]]  # any turn, any verdict
    assert not [sql for sql, step in plans if "TEMP B-TREE FOR ORDER" in step and sql in first]


def test_costs_of_closed_days_and_of_today_are_one_sum(batches: EntryBatches, database: Database) -> None:
    today, yesterday = midnight(NOW), midnight(NOW, later=-1)
    taken = [
        UsageAdded(turn_id=turn_id, model=model, usage=Usage(10, 5, 3, 1, cost), at=at)
        for turn_id, model, cost, at in (
            ("a", "m", 0.5, yesterday),
            ("b", "m", 1.0, today),
            ("b", "n", None, today + 1),
            ("a", "old", 9.0, midnight(NOW, later=-9)),
        )
    ]
    write(batches, opening("a"), opening("b", said("?", where=ELSEWHERE, user=888)), *taken)

    def told(by: str) -> list[tuple[str, int, float]]:
        found: tuple[CostSum, ...] = read(database, costs, yesterday, by)
        return [(one.name, one.usage.requests, one.usage.cost) for one in found]

    expected = {
        "day": [(str(yesterday), 1, 0.5), (str(today), 2, 1.0)],
        "model": [("m", 2, 1.5), ("n", 1, 0.0)],
        "conversation": [(str(ELSEWHERE), 2, 1.0), (str(GROUP), 1, 0.5)],
        "asker": [("888", 2, 1.0), ("777", 1, 0.5)],
    }
    assert {by: told(by) for by in expected} == expected
    while batches.run(lambda connection: add_up(connection, now=today + LATE)):
        pass
    assert {by: told(by) for by in expected} == expected


async def test_a_reading_that_takes_too_long_is_broken_off(
    batches: EntryBatches, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(batches, *whole())
    monkeypatch.setattr(shown, "DEADLINE", 0.05)
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
    with ThreadPoolExecutor(1) as thread:
        reading = SqlShown(database, thread)
        assert await reading._read(lambda connection: connection.exec_driver_sql(endless).all()) is None
        monkeypatch.setattr(shown, "DEADLINE", 10.0)
        found = await reading.rows(TurnQuery())  # the thread is free again
        assert found is not None
        assert len(found.rows) == 1


def test_a_message_that_is_gone_leaves_its_verdict(batches: EntryBatches, database: Database) -> None:
    write(batches, Judged(conversation=GROUP, message_id="x", sender=5, wakes=False, reason="r"), heard(), began("t1"))
    (row,) = read(database, rows, TurnQuery()).rows
    assert (row.text, row.name, row.asker, row.reason) == ("", "", 5, "r")
