"""The journal's own account of runs, in the words of LOG_RUNS."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from adapters.storage.batches import EntryBatches, Put
from adapters.storage.database import Database
from adapters.storage.queries.export import lines_of_run, run_lines
from bot.core.journal import Entry, RunSuspended
from frostagent.types.messages import ToolMessage
from frostagent.types.runs import Stop, ToolFinished
from tests.adapters.storage.entries import CALLING, NOW, began, closing, ended, opening, step


def whole(turn_id: str, at: float = NOW) -> list[Entry]:
    opened = opening(turn_id, at=at)
    failed = ToolMessage("c2", "nothing", "error: no [TOOL_NOT_FOUND]", is_error=True)
    return [
        opened,
        step(turn_id, 1, CALLING),
        began(turn_id, 1, "c1", "get_weather"),
        ended(turn_id, ToolMessage("c1", "get_weather", "晴"), 1, code="ok", seconds=1.5),
        ended(turn_id, failed, 1, code="TOOL_NOT_FOUND", seconds=0.0),
        step(turn_id, 2),
        closing(opened),
    ]


def put(batches: EntryBatches, *entries: Entry) -> None:
    batches.write([Put(entry, NOW) for entry in entries])


def test_a_cancelled_call_says_so_by_its_code(batches: EntryBatches, database: Database) -> None:
    opened, calling, started, _, failed, *_ = whole("t1")
    assert isinstance(failed, ToolFinished)
    put(batches, opened, calling, started, replace(failed, code="TOOL_CANCELLED"))
    assert "execute_cancelled" in [line["action"] for line in lines(database)]


def lines(database: Database, *, limit: int = 10, content: bool = True) -> list[dict[str, Any]]:
    with database.reading() as connection:
        return list(run_lines(connection, limit=limit, content=content))


def test_a_run_is_told_from_its_start_to_its_end(batches: EntryBatches, database: Database) -> None:
    put(batches, *whole("t1"))
    found = lines(database)
    assert [(line["layer"], line["action"]) for line in found] == [
        ("run", "start"),
        ("inference", "response"),
        ("tool", "execute_start"),
        ("tool", "execute_end"),
        ("tool", "execute_end"),
        ("inference", "response"),
        ("run", "end"),
    ]
    start, first, called, good, bad, second, end = found
    assert (start["conversation"], start["asker"]) == ("10001:group:4242", 777)
    assert (first["calls"], second["step"]) == (["c1", "c2"], 2)
    assert called["response"] == good["response"] == first["response"] == "t1-1"
    assert (called["args"], good["result"], good["duration_ms"]) == ({"city": "北京"}, "晴", 1500.0)
    assert (good["error"], bad["error"], bad["args"]) == (None, "error: no [TOOL_NOT_FOUND]", "{")
    assert (end["outcome"], end["prompt"], end["duration_ms"]) == ("answered", 10, 1000.0)


def test_without_content_nothing_that_was_said_is_told(batches: EntryBatches, database: Database) -> None:
    put(batches, *whole("t1"))
    text = str(lines(database, content=False))
    assert not [word for word in ("北京", "晴", "你好") if word in text]
    assert "TOOL_NOT_FOUND" in text


def test_only_the_latest_are_told_the_oldest_of_them_first(batches: EntryBatches, database: Database) -> None:
    for number in range(4):
        put(batches, *whole(f"t{number}", NOW + number))
    starts = [line["run"] for line in lines(database, limit=2) if line["action"] == "start"]
    assert starts == ["t2", "t3"]


def test_one_run_can_be_told_alone(batches: EntryBatches, database: Database) -> None:
    put(batches, *whole("t1"), *whole("t2"))
    with database.reading() as connection:
        assert {line["run"] for line in lines_of_run(connection, "t1", content=True)} == {"t1"}
        assert list(lines_of_run(connection, "t9", content=True)) == []


def test_a_run_that_goes_on_has_no_end_and_one_that_waits_says_so(batches: EntryBatches, database: Database) -> None:
    put(batches, opening("t1"), opening("t2"))
    put(batches, RunSuspended(turn_id="t2", state="{}", expires=NOW + 60))
    assert [(line["run"], line["action"]) for line in lines(database)] == [
        ("t1", "start"),
        ("t2", "start"),
        ("t2", "pause"),
    ]


def test_a_failure_is_told_with_its_reason(batches: EntryBatches, database: Database) -> None:
    opened = opening("t1")
    put(batches, opened, closing(opened, stop=Stop.FAILED))
    assert lines(database)[-1]["outcome"] == "failed"
