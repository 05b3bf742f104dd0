"""The runs there were, as an operator sees them."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from adapters.storage.batches import EntryBatches, Put
from adapters.storage.claim import FileClaim
from adapters.storage.database import Database
from adapters.storage.migrations import migrate
from adapters.traces.run_log import RunSummary, delivery_line
from bot.cli.past_runs import chain_to_text, latest_runs, lines_of, runs_to_text
from bot.core.journal import Entry
from config.settings import Settings
from frostagent.tracing import line_of
from tests.adapters.storage.entries import CALLING, NOW, closing, opening, step
from tests.adapters.traces.scene import run_cancelled, run_scene
from tests.fakes import RecordingObserver

BROKE = (
    "error: the tool broke (RuntimeError). Do not repeat the call; say that it did not work. [TOOL_EXECUTION_FAILED]"
)


@contextmanager
def no_journal() -> Iterator[Database]:
    raise AssertionError("the journal is not asked")
    yield


async def a_file_of_runs(folder: Path, *names: str) -> Settings:
    file = folder / "runs.jsonl"
    with file.open("w", encoding="utf-8") as out:
        for at, name in enumerate(names):
            observer = RecordingObserver()
            await run_scene(observer, name=name)
            for event in observer.events:
                out.write(json.dumps(line_of(event, at, content=True), ensure_ascii=False) + "\n")
    return Settings(log_runs=file)


async def test_the_runs_of_the_file_are_listed_newest_first(tmp_path: Path) -> None:
    settings = await a_file_of_runs(tmp_path, "t1", "t2", "t3")
    runs = latest_runs(settings, no_journal, limit=2)
    assert [run.run for run in runs] == ["t3", "t2"]
    head, first, _ = runs_to_text(runs).splitlines()
    assert head.split() == [
        *("RUN", "STARTED", "OUTCOME", "STEPS", "TOOLS", "TOKENS", "COST", "SECONDS", "CONVERSATION")
    ]
    assert " ".join(first.split()) == (
        "t3 1970-01-01 00:00:02+00:00 answered 2 look_up fail (1 failed) 30 - 0.0 10001:group:4242"
    )


def test_a_file_that_is_not_there_has_no_runs(tmp_path: Path) -> None:
    settings = Settings(log_runs=tmp_path / "runs.jsonl")
    assert latest_runs(settings, no_journal, limit=9) == []
    assert lines_of(settings, no_journal, "t1") == []
    assert len(runs_to_text([]).splitlines()) == 1


async def test_a_run_is_told_from_its_start_to_its_end(tmp_path: Path) -> None:
    settings = await a_file_of_runs(tmp_path, "t1", "t2")
    told = [line.split("  ", 1)[1] for line in chain_to_text(lines_of(settings, no_journal, "t2")).splitlines()]
    assert told == [
        "run t2 start in 10001:group:4242 for 777",
        "step 1: the model answered t2-1 (tool_calls, 10 + 5 tokens, calls c0 c1), 0.00 s",
        'step 1: look_up c0 starts  {"city": "北京"}',
        'step 1: fail c1 starts  {"why": "private words"}',
        "step 1: look_up c0 ok, 0.00 s  北京: 晴 sk-very-secret-key",
        f"step 1: fail c1 {BROKE}, 0.00 s",
        "step 2: the model answered t2-2 (stop, 10 + 5 tokens), 0.00 s  北京晴。",
        "run t2 answered, 2 steps, 0.00 s  北京晴。",
    ]


def test_what_a_call_waited_is_told_where_it_is_worth_it() -> None:
    line = {"timestamp": "", "layer": "tool", "action": "execute_end", "step": 1, "name": "add", "call_id": "c0"}
    told = [chain_to_text([{**line, "duration_ms": 500.0, "waited_ms": waited}]) for waited in (2500.0, 3.0, None)]
    assert [text.strip() for text in told] == [
        "step 1: add c0 ok, 0.50 s after 2.50 s",
        "step 1: add c0 ok, 0.50 s",
        "step 1: add c0 ok, 0.50 s",
    ]


async def test_a_cancelled_call_and_lines_nobody_knows_are_told_too() -> None:
    observer = RecordingObserver()
    await run_cancelled(observer)
    lines: list[dict[str, Any]] = [line for event in observer.events if (line := line_of(event, 0, content=False))]
    text = chain_to_text([*lines, {"timestamp": "", "layer": "else", "run": "t1", "x": "\x1b"}])
    assert "hang c0 cancelled, " in text
    assert "run t1 stopped, 1 steps" in text
    assert '"layer": "else"' in text
    assert "\x1b" not in text


def test_the_journal_is_asked_where_no_file_is_named(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path}/bot.db", migrate=migrate)

    @contextmanager
    def journal() -> Iterator[Database]:
        yield database

    with contextlib.closing(database):
        for number in (1, 2):
            opened = opening(f"t{number}", at=NOW + number)
            entries: list[Entry] = [opened, step(f"t{number}", 1, CALLING), step(f"t{number}", 2), closing(opened)]
            EntryBatches(database, stamp=str).write([Put(entry, NOW) for entry in entries])
        (run,) = latest_runs(Settings(), journal, limit=1)
        assert run == RunSummary(
            run="t2",
            started="2023-11-14T22:13:22.000Z",
            conversation="10001:group:4242",
            asker=777,
            outcome="answered",
            steps=1,
            tokens=15,
            seconds=1.0,
        )
        assert "你好" not in chain_to_text(lines_of(Settings(), journal, "t1"))
        assert "你好" in chain_to_text(lines_of(Settings(log_content=True), journal, "t1"))
        assert lines_of(Settings(), journal, "t9") == []


async def test_what_still_runs_is_interrupted_where_no_process_has_the_journal(tmp_path: Path) -> None:
    settings = await a_file_of_runs(tmp_path, "t1")
    file = tmp_path / "frost.db"
    settings = settings.model_copy(update={"store_url": SecretStr(f"sqlite:///{file}")})
    lines = (tmp_path / "runs.jsonl").read_text("utf-8").splitlines()
    (tmp_path / "runs.jsonl").write_text(lines[0] + "\n")
    assert [run.outcome for run in latest_runs(settings, no_journal, limit=9)] == ["interrupted"]
    claim = FileClaim(file)
    claim.take()
    assert [run.outcome for run in latest_runs(settings, no_journal, limit=9)] == ["running"]
    claim.release(whole=True)
    unknown = settings.model_copy(update={"store_url": SecretStr("nonsense")})
    assert [run.outcome for run in latest_runs(unknown, no_journal, limit=9)] == ["running"]


def test_times_are_those_of_the_clock_on_the_wall_with_its_zone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Shanghai")
    time.tzset()
    try:
        row = runs_to_text([RunSummary("t1", started="2026-01-31T12:00:00.123Z")]).splitlines()[1]
        line = {"timestamp": "2026-01-31T12:00:00.123Z", "layer": "run", "action": "start", "run": "t1"}
        assert "2026-01-31 20:00:00+08:00" in row
        assert chain_to_text([line]).startswith("2026-01-31 20:00:00.123+08:00  run t1 start")
        assert chain_to_text([{**line, "timestamp": "once"}]).startswith("once  run t1")
    finally:
        monkeypatch.undo()
        time.tzset()


async def test_a_run_whose_answer_did_not_arrive_is_not_told_as_answered(tmp_path: Path) -> None:
    settings = await a_file_of_runs(tmp_path, "t1", "t2", "t3", "t4")
    lines = [
        delivery_line(name, outcome, 9.0)
        for name, outcome in (("t2", "not_delivered"), ("t3", "unconfirmed"), ("t4", "unconfirmed"), ("t4", "answered"))
    ]
    with (tmp_path / "runs.jsonl").open("a", encoding="utf-8") as out:
        out.writelines(f"{json.dumps(line)}\n" for line in lines)
    told = {run.run: run.outcome for run in latest_runs(settings, no_journal, limit=9)}
    assert told == {"t1": "answered", "t2": "not_delivered", "t3": "unconfirmed", "t4": "answered"}
    ends = {name: chain_to_text(lines_of(settings, no_journal, name)).splitlines()[8:] for name in told}
    assert {name: [line.split("  ", 1)[1] for line in end] for name, end in ends.items()} == {
        "t1": [],
        "t2": ["run t2, its answer: not delivered"],
        "t3": ["run t3, its answer: not confirmed by QQ"],
        "t4": ["run t4, its answer: not confirmed by QQ", "run t4, its answer: arrived after all"],
    }
