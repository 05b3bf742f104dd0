from __future__ import annotations

import json
from typing import Any

from adapters.traces.run_log import RunSummary, chain, event_line, read_lines, summaries
from tests.adapters.traces.scene import run_scene
from tests.fakes import RecordingObserver


async def scene(name: str, at: float) -> list[dict[str, Any]]:
    observer = RecordingObserver()
    await run_scene(observer, name=name)
    return [line for event in observer.events if (line := event_line(event, at, content=True))]


async def test_a_run_is_summed_up_with_outcome_steps_tools_tokens_and_seconds() -> None:
    (run,) = summaries(await scene("t1", 0))
    assert run == RunSummary(
        "t1",
        started="1970-01-01T00:00:00.000Z",
        conversation="10001:group:4242",
        asker=777,
        outcome="answered",
        steps=2,
        tools=("look_up", "fail"),
        failed=1,
        tokens=30,
    )


async def test_the_newest_run_comes_first_also_where_two_began_at_once() -> None:
    lines = [*await scene("t1", 5), *await scene("t2", 0), *await scene("t3", 5)]
    assert [run.run for run in summaries(lines)] == ["t3", "t1", "t2"]


async def test_a_run_without_an_end_goes_on_and_has_what_its_steps_took() -> None:
    (run,) = summaries((await scene("t1", 0))[:-1])
    assert (run.outcome, run.steps, run.tokens) == ("running", 2, 30)


def test_a_run_that_waits_says_so_until_it_goes_on() -> None:
    pause = {"run": "t1", "layer": "run", "action": "pause", "duration_ms": 1500.0}
    go_on = {"run": "t1", "layer": "run", "action": "continue", "asker": 1}
    end = {"run": "t1", "layer": "run", "action": "end", "outcome": "answered", "duration_ms": 500.0, "cost": 0.25}
    assert summaries([pause])[0].outcome == "waiting"
    assert summaries([pause, go_on])[0].outcome == "running"
    (run,) = summaries([pause, go_on, end])
    assert (run.outcome, run.seconds, run.cost) == ("answered", 2.0, 0.25)


def test_what_steps_cost_is_added_up_where_it_is_known() -> None:
    step = {"run": "t1", "layer": "inference", "action": "response"}
    lines: list[dict[str, Any]] = [{**step, "step": 1, "cost": 0.5}, {**step, "step": 2, "cost": None}]
    assert summaries(lines)[0].cost == 0.5
    assert summaries([{**step, "step": 1, "cost": None}])[0].cost is None


def test_lines_that_are_torn_or_none_of_ours_are_passed_over() -> None:
    good = {"run": "t1", "layer": "run", "action": "start"}
    texts = [
        '{"run": "t0", "layer"',
        "",
        "[1]",
        "null",
        '{"run": 1, "layer": "run"}',
        '{"run": "t1"}',
        json.dumps(good),
    ]
    assert list(read_lines(texts)) == [good]
    assert summaries([{"run": "t1", "layer": "else"}]) == [RunSummary("t1")]


def test_the_chain_of_a_run_is_found_by_the_beginning_of_its_id() -> None:
    lines: list[dict[str, Any]] = [{"run": name, "layer": "run"} for name in ("abc", "abd", "abc", "ab")]
    assert len(chain(lines, "abc")) == 2
    assert chain(lines, "abd") == [lines[1]]
    assert chain(lines, "ab") == [lines[3]]
    assert chain(lines, "a") == []
    assert chain(lines, "x") == []


def test_the_end_of_a_process_interrupts_what_ran_and_nothing_that_waits_or_had_ended() -> None:
    def about(action: str, run: str, **more: object) -> dict[str, Any]:
        return {"timestamp": "2026-01-31T12:00:00.000Z", "layer": "run", "action": action, "run": run, **more}

    lines: list[dict[str, Any]] = [
        *(about("start", run) for run in ("ran", "waited", "went on", "ended")),
        *(about("pause", run) for run in ("waited", "went on")),
        about("end", "ended", outcome="answered"),
        {"timestamp": "", "layer": "process", "action": "start", "run": ""},
        about("continue", "went on"),
    ]
    found = {run.run: run.outcome for run in summaries(lines)}
    assert found == {"ran": "interrupted", "waited": "waiting", "went on": "running", "ended": "answered"}
    assert chain(lines, "") == []
    assert [line["action"] for line in chain(lines, "went")] == ["start", "pause", "continue"]
