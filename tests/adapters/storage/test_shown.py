"""What the console reads: rows by keyset, a turn in full, sums; on both databases."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from msgspec.structs import replace
from sqlalchemy import Connection, Engine, event

from adapters.storage.batches import EntryBatches
from adapters.storage.database import Database
from adapters.storage.queries.conversations import chat, line
from adapters.storage.queries.sums import COSTS, costs, day, ends
from adapters.storage.queries.turns import rows, trace
from adapters.storage.reading import CONSOLE_TIMEOUT, ConsoleReader, SqlConsoleQueries
from adapters.storage.retention import LATE, add_up
from bot.core.calendar_days import midnight
from bot.core.console_views import CostSum, TurnQuery
from bot.core.conversation import Conversation
from bot.core.journal import MemberNumbered, MessageObserved, RunSuspended, UsageAdded
from bot.core.query_results import DayCounts
from frostagent.types.messages import AssistantMessage, ToolCall, ToolMessage, Usage
from frostagent.types.runs import Stop
from tests.adapters.storage.entries import NOW, began, ended, opening, read, step
from tests.adapters.storage.test_books import ELSEWHERE, whole, write
from tests.adapters.storage.test_turn_rows import asked
from tests.fakes import GROUP, said

# The latest turns and verdicts are read backwards until there are enough; runs in error are few.
READ_IN_PART = {
    "sqlite": {"SCAN turns", "SCAN verdicts", "SCAN CONSTANT ROW", "SCAN few", "SCAN runs USING INDEX runs_in_error"},
    "postgresql": set[str](),
}


def test_no_page_walks_over_all_rows(batches: EntryBatches, database: Database) -> None:
    write(batches, *whole())
    statements: list[tuple[str, Any]] = []
    with database.reading() as connection:
        event.listen(
            connection, "before_cursor_execute", lambda _c, _k, sql, values, *_: statements.append((sql, values))
        )
        for query in (TurnQuery(), TurnQuery(where=str(GROUP), turn=9, verdict=9), TurnQuery(outcome="failed")):
            rows(connection, query)
        trace(connection, "t1")
        ends(connection, NOW)
        chat(connection, GROUP, 0)
        line(connection, GROUP, "5")
        plans = [(sql, step) for sql, values in list(statements) for step in plan(connection, sql, values)]
    walks = {step for _, step in plans if step.startswith(("SCAN", "Seq Scan"))}
    assert not {step for step in walks - READ_IN_PART[database.dialect.name] if "subquery" not in step}
    first = [sql for sql, _ in statements[:2]]  # any turn, any verdict
    assert not [step for sql, step in plans if sql in first and ("TEMP B-TREE FOR ORDER" in step or "Sort" in step)]


def plan(connection: Connection, sql: str, values: Any) -> list[str]:
    """The steps in which the database goes about a statement; by indexes where there are any, few rows as there are."""
    if connection.dialect.name == "sqlite":
        return [str(step[3]) for step in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {sql}", values)]
    for way in ("seqscan", "bitmapscan", "sort"):
        connection.exec_driver_sql(f"SET enable_{way} = off")  # it is gone where there is any other
    told = [str(step[0]) for step in connection.exec_driver_sql(f"EXPLAIN (COSTS OFF) {sql}", values)]
    return [line.strip(" ->") for line in told]


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

    named = MemberNumbered(conversation=ELSEWHERE, number=1, user_id=888, name="小红")
    for group in ("旧名", "学习群"):
        write(batches, named, MessageObserved(replace(said("!", where=ELSEWHERE), group_name=group), overheard=True))
    for by, called in (("conversation", ["学习群", ""]), ("asker", ["小红", ""]), ("model", ["", ""])):
        assert [one.called for one in read(database, costs, yesterday, by)] == called

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


@pytest.mark.parametrize("is_over", [False, True], ids=["today", "added up"])
def test_the_costs_by_anything_add_up_to_those_by_day_however_many_there_are(
    batches: EntryBatches, database: Database, is_over: bool
) -> None:
    today, yesterday = midnight(NOW), midnight(NOW, later=-1)
    for number in range(2 * COSTS + 5):
        there = Conversation(10001, "private", 5 + number)
        turn = opening(f"t{number}", said("?", where=there, user=5 + number, message_id=str(number)), at=yesterday)
        calls = tuple(ToolCall(f"c{call}", f"tool {number} {call}", "{}") for call in range(3))
        write(batches, turn, step(turn.turn_id, 1, AssistantMessage(tool_calls=calls)))
        for call in calls:
            write(batches, began(turn.turn_id, 1, call.id, call.name))
            write(batches, ended(turn.turn_id, ToolMessage(call.id, call.name, "x")))
        write(batches, step(turn.turn_id, 2))
        model, cost = f"m{number}", None if number % 5 == 0 else number / 7
        for at in (yesterday, today):
            used = UsageAdded(turn_id=turn.turn_id, model=model, usage=Usage(100 + number, 7, number, 1, cost), at=at)
            write(batches, used)
    while is_over and batches.run(lambda connection: add_up(connection, now=today + LATE)):
        pass

    def whole(by: str) -> tuple[float, ...]:
        sums: tuple[CostSum, ...] = read(database, costs, yesterday, by)
        assert len(sums) <= COSTS + 1
        return tuple(
            round(sum(getattr(one.usage, name) for one in sums), 6)
            for name in ("cost", "prompt", "completion", "cached")
        )

    assert {by: whole(by) for by in ("conversation", "asker", "model", "tool")} == dict.fromkeys(
        ("conversation", "asker", "model", "tool"), whole("day")
    )
    *named, others = read(database, costs, yesterday, "asker")
    assert (len(named), others.others, others.name) == (COSTS, COSTS + 5, "")


def test_runs_that_failed_are_counted_among_those_that_ended_of_the_turns_since_then(
    batches: EntryBatches, database: Database
) -> None:
    day = 86_400
    write(batches, opening("first", at=NOW - 20 * day))
    assert read(database, ends, 0.0) == (0, 0)
    write(batches, *asked("old", NOW - 9 * day, stop=Stop.FAILED, error="auth: no"), *asked("b", NOW))
    write(batches, *asked("c", NOW + 1, stop=Stop.FAILED, error="auth: no"), opening("open", at=NOW + 2))
    write(batches, *asked("d", NOW + 3, stop=Stop.STOPPED, error="who asked stopped it"))
    write(batches, opening("waits", at=NOW + 4), RunSuspended(turn_id="waits", state="{}", expires=NOW + 99))
    assert read(database, ends, NOW - day) == (3, 1)
    assert read(database, ends, NOW - 10 * day) == (4, 2)
    assert read(database, ends, NOW + day) == (0, 0)


async def test_only_what_the_first_page_asks_stays_compiled(database: Database, batches: EntryBatches) -> None:
    write(batches, *whole())
    compiled: list[str] = []

    def note(_connection: Connection, _cursor: object, _sql: str, _values: object, context: Any, _many: bool) -> None:
        if context.compiled is not None and context.compiled.statement is not None:
            compiled.append(context.cache_hit.name)

    with ThreadPoolExecutor(1) as thread:
        reading = SqlConsoleQueries(ConsoleReader(database, thread))

        async def first_page() -> None:
            day = await reading.day(since=NOW - 60, until=NOW + 60)
            assert day is not None
            assert day.questions
            assert await reading.ends(since=NOW - 60)
            assert await reading.rows(TurnQuery())
            assert await reading.costs(since=NOW - 60, by="day")

        event.listen(Engine, "before_cursor_execute", note)
        try:
            await first_page()
            assert "CACHE_MISS" in compiled
            compiled.clear()
            await first_page()
            assert set(compiled) == {"CACHE_HIT"}
            compiled.clear()
            assert await reading.rows(TurnQuery(where=str(GROUP)))
            assert await reading.costs(since=NOW - 60, by="model")
            assert await reading.tools() is not None
            assert set(compiled) == {"CACHING_DISABLED"}
        finally:
            event.remove(Engine, "before_cursor_execute", note)


async def test_the_day_at_a_glance_has_the_counts_of_its_sums(database: Database, batches: EntryBatches) -> None:
    write(batches, *whole(), *asked("other", NOW + 1, where=ELSEWHERE, stop=Stop.SILENT))
    with ThreadPoolExecutor(1) as thread:
        glance = await SqlConsoleQueries(ConsoleReader(database, thread)).day(since=NOW - 60, until=NOW + 60)
    sums = read(database, day, NOW - 60, NOW + 60, None)
    assert glance == DayCounts(**{name: getattr(sums, name) for name in DayCounts.__struct_fields__})
    assert sums.turns == (("answered", 1), ("silent", 1))
    assert sums.models


async def test_a_reading_that_takes_too_long_is_broken_off(
    batches: EntryBatches, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(batches, *whole())
    assert CONSOLE_TIMEOUT == 2.0
    monkeypatch.setattr("adapters.storage.reading.CONSOLE_TIMEOUT", 0.05)
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
    with ThreadPoolExecutor(1) as thread:
        reading = SqlConsoleQueries(ConsoleReader(database, thread))
        assert await reading.reader.read(lambda connection: connection.exec_driver_sql(endless).all()) is None
        monkeypatch.setattr("adapters.storage.reading.CONSOLE_TIMEOUT", 10.0)
        found = await reading.rows(TurnQuery())  # the thread is free again
        assert found is not None
        assert len(found.rows) == 1
