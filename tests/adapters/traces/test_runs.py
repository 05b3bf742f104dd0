from __future__ import annotations

import json
import logging
import resource
import signal
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from adapters.traces import run_log
from adapters.traces.run_log import RunLog, masked, read_lines, summaries
from bot.core.journal import TurnClosed, Undelivered
from frostagent.text.masking import Mask
from frostagent.types.messages import Usage
from frostagent.types.runs import Asker, RunStarted, Stop
from tests.adapters.traces.scene import SECRET, run_scene
from tests.fakes import GROUP, ManualClock


def log(path: Path, *, content: bool = True) -> RunLog:
    return RunLog(path, clock=ManualClock(), mask=Mask([SECRET]), content=content)


def read(path: Path) -> list[dict[str, Any]]:
    """What it has of runs."""
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    return [line for line in lines if line.get("layer") != "process"]


def started(name: str) -> RunStarted:
    return RunStarted(run_id=name, conversation=str(GROUP), asker=Asker("777"))


async def test_a_run_is_in_the_file_line_by_line_and_only_its_owner_can_read_it(tmp_path: Path) -> None:
    file = tmp_path / "new" / "runs.jsonl"
    runs_log = log(file)
    with runs_log.writing():
        await run_scene(runs_log)
    found = read(file)
    assert [line["layer"] for line in found] == ["run", "inference", *["tool"] * 4, "inference", "run"]
    assert found[0]["timestamp"] == "2023-11-14T22:13:20.000Z"
    assert mode_of(file) == 0o600


def mode_of(file: Path) -> int:
    return stat.S_IMODE(file.stat().st_mode)


async def test_no_secret_is_in_the_file_and_letters_stay_letters(tmp_path: Path) -> None:
    runs_log = log(tmp_path / "runs.jsonl")
    with runs_log.writing():
        await run_scene(runs_log)
    text = (tmp_path / "runs.jsonl").read_text("utf-8")
    assert SECRET not in text
    assert "北京: 晴 ***" in text


async def test_what_was_said_is_left_out_without_log_content(tmp_path: Path) -> None:
    runs_log = log(tmp_path / "runs.jsonl", content=False)
    with runs_log.writing():
        await run_scene(runs_log)
    assert "北京" not in (tmp_path / "runs.jsonl").read_text("utf-8")


def test_a_file_that_was_open_to_others_is_closed_to_them_and_added_to(tmp_path: Path) -> None:
    file = tmp_path / "runs.jsonl"
    file.write_text('{"run": "t0"}\n')
    file.chmod(0o644)
    runs_log = log(file)
    with runs_log.writing():
        runs_log.notice(started("t1"))
    assert [line["run"] for line in read(file)] == ["t0", "t1"]
    assert mode_of(file) == 0o600


def test_an_event_that_makes_no_line_costs_only_itself(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    runs_log = log(tmp_path / "runs.jsonl")
    with runs_log.writing():
        runs_log.notice(RunStarted(run_id="t1", conversation=GROUP, asker=None))  # type: ignore[arg-type]  # a bug
        runs_log.notice(started("\ud800"))
        runs_log.notice(started("t3"))
    assert [line["run"] for line in read(tmp_path / "runs.jsonl")] == ["?", "t3"]
    assert "an event of run t1 has no line" in caplog.text


@contextmanager
def writing_at_once(runs_log: RunLog) -> Iterator[Callable[[RunStarted], None]]:
    """Write in this thread, so that a test can look in between."""

    def write(event: RunStarted) -> None:
        runs_log.notice(event)
        runs_log._append([line for item in runs_log._take() if item and (line := runs_log._line(*item))])

    yield write


def test_a_file_that_cannot_be_written_is_told_once_and_once_it_can_be_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "runs.jsonl"
    file.mkdir()
    with writing_at_once(log(file)) as write, caplog.at_level(logging.WARNING):
        for name in ("t1", "t2", "t3"):
            write(started(name))
        file.rmdir()
        for name in ("t4", "t5"):
            write(started(name))
    assert [line["run"] for line in read(file)] == ["t4", "t5"]
    assert caplog.messages == [
        f"LOG_RUNS: {file} cannot be written (Is a directory): what runs do is lost until it can",
        f"LOG_RUNS: {file} is written again; about 3 lines were lost",
    ]


def test_a_line_that_a_full_disk_tore_does_not_spoil_the_next(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "runs.jsonl"
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        with writing_at_once(log(file)) as write, caplog.at_level(logging.WARNING):
            write(started("t1"))
            resource.setrlimit(resource.RLIMIT_FSIZE, (file.stat().st_size + 20, limits[1]))
            write(started("t2"))
            write(started("t3"))
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
            write(started("t4"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, before)
    first, torn, last = file.read_text("utf-8").splitlines()
    assert (json.loads(first)["run"], json.loads(last)["run"]) == ("t1", "t4")
    assert len(torn) == 20
    assert len(caplog.messages) == 2


def test_a_file_that_is_moved_away_is_begun_anew(tmp_path: Path) -> None:
    file = tmp_path / "runs.jsonl"
    with writing_at_once(log(file)) as write:
        write(started("t1"))
        file.replace(tmp_path / "runs.1")
        write(started("t2"))
    assert [line["run"] for line in read(file)] == ["t2"]


def test_more_than_can_wait_is_lost_and_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(run_log, "MAX_WAITING", 3)
    runs_log = log(tmp_path / "runs.jsonl")
    for number in range(5):
        runs_log.notice(started(f"t{number}"))
    with runs_log.writing():
        pass
    assert [line["run"] for line in read(tmp_path / "runs.jsonl")] == ["t0", "t1", "t2"]
    assert "about 2 lines were lost" in caplog.text


def test_everything_that_is_text_is_masked_names_too() -> None:
    value = {"a": [f"x{SECRET}", 1, None, (SECRET,)], SECRET: True}
    assert masked(value, Mask([SECRET])) == {"a": ["x***", 1, None, ["***"]], "***": True}


def test_each_process_begins_with_a_line_of_its_own_and_what_ran_before_was_interrupted(tmp_path: Path) -> None:
    file = tmp_path / "runs.jsonl"
    for name in ("t1", "t2"):
        runs_log = log(file)
        with runs_log.writing():
            runs_log.notice(started(name))
    texts = file.read_text("utf-8").splitlines()
    lines = [json.loads(text) for text in texts]
    assert [line["run"] for line in lines] == ["", "t1", "", "t2"]
    assert [line["layer"] for line in lines] == ["process", "run"] * 2
    found = {run.run: run.outcome for run in summaries(read_lines(texts))}
    assert found == {"t2": "running", "t1": "interrupted"}


async def test_what_became_of_an_answer_stands_behind_the_end_of_its_run_and_is_its_outcome(tmp_path: Path) -> None:
    file = tmp_path / "runs.jsonl"
    ended: dict[str, tuple[Undelivered | None, str, str]] = {
        "t1": (None, "", "answered"),
        "t2": (Undelivered.NOT_DELIVERED, "", "not_delivered"),
        "t3": (Undelivered.UNCONFIRMED, "", "unconfirmed"),
        "t4": (Undelivered.UNCONFIRMED, "not_delivered", "not_delivered"),
        "t5": (Undelivered.UNCONFIRMED, "answered", "answered"),
    }
    before = log(file)
    with before.writing():
        for name, (undelivered, _, _) in ended.items():
            await run_scene(before, name=name)
            closed = TurnClosed(turn_id=name, stop=Stop.ANSWERED, round=(), usage=Usage(), steps=1, at=0.0)
            before.see(structs.replace(closed, undelivered=undelivered))
    after = log(file)  # of the process that takes up what waited to be sent
    with after.writing():
        for name, (_, later, _) in ended.items():
            if later:
                after.settled(name, later)
    with file.open("r", encoding="utf-8") as texts:
        found = {run.run: run.outcome for run in summaries(read_lines(texts))}
    assert found == {name: outcome for name, (_, _, outcome) in ended.items()}
    lines = [line for line in read(file) if line["action"] in ("end", "delivery")]
    assert [line["outcome"] for line in lines if line["run"] == "t4"] == ["answered", "unconfirmed", "not_delivered"]
    assert [line["action"] for line in lines if line["run"] == "t1"] == ["end"]
