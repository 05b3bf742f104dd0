"""Lines of runs, as `lines.py` makes them or the journal gives them -> what became of each run.
Pure.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from adapters.traces.lines import Line

RUNNING = "running"
WAITING = "waiting"
INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True)
class RunSummary:
    """One run: when and where it began, what became of it, what it took. `cost` is in dollars, None
    if unknown.

    `outcome` is a `Stop`'s word, or an `Undelivered`'s if its answer is not known to have arrived,
    or `running`, or `waiting` for somebody's word; what a process that has ended left running was
    interrupted. `tools` are the names it called, in order, one for each call.
    """

    run: str
    started: str = ""
    conversation: str = ""
    asker: int = 0
    outcome: str = RUNNING
    steps: int = 0
    tools: tuple[str, ...] = ()
    failed: int = 0
    tokens: int = 0
    cost: float | None = None
    seconds: float = 0.0
    error: str | None = None


def read_lines(texts: Iterable[str]) -> Iterator[Line]:
    """The lines of a file; one that is torn, or none of ours, is passed over."""
    for text in texts:
        try:
            line = json.loads(text)
        except (ValueError, RecursionError):
            continue
        if isinstance(line, dict) and isinstance(line.get("run"), str) and "layer" in line:
            yield line


def summaries(lines: Iterable[Line]) -> list[RunSummary]:
    """Every run there is, the one that began last first."""
    runs: dict[str, RunSummary] = {}
    for line in lines:
        if line["layer"] == "process":
            runs = {name: interrupted(run) for name, run in runs.items()}
            continue
        run = line["run"]
        before = runs.get(run) or RunSummary(run, started=str(line.get("timestamp", "")))
        runs[run] = _after(before, line)
    oldest_first = sorted(runs.values(), key=lambda summary: summary.started)
    return oldest_first[::-1]


def interrupted(run: RunSummary) -> RunSummary:
    """The run, after the end of its process: one that waits for somebody's word goes on in the
    next.
    """
    return replace(run, outcome=INTERRUPTED) if run.outcome == RUNNING else run


def chain(lines: Iterable[Line], run: str) -> list[Line]:
    """The lines of one run, in their order; `run` may be the beginning of its id, if it is that of
    one run only.
    """
    found: dict[str, list[Line]] = {}
    for line in lines:
        if line["layer"] != "process" and line["run"].startswith(run):
            found.setdefault(line["run"], []).append(line)
    return found.get(run) or (next(iter(found.values())) if len(found) == 1 else [])


def _after(run: RunSummary, line: Line) -> RunSummary:
    """The run, with what this line tells of it."""
    match line:
        case {"layer": "run", "action": "start" | "continue"}:
            asker = line.get("asker")
            where = str(line.get("conversation", ""))
            return replace(
                run,
                conversation=where,
                asker=asker if isinstance(asker, int) else 0,
                outcome=RUNNING,
            )
        case {"layer": "run", "action": "pause"}:
            return replace(run, outcome=WAITING, seconds=run.seconds + _seconds(line))
        case {"layer": "run", "action": "end"}:
            return replace(
                run,
                outcome=str(line.get("outcome", "")),
                steps=_number(line, "steps"),
                tokens=_number(line, "prompt") + _number(line, "completion"),
                cost=line.get("cost"),
                seconds=run.seconds + _seconds(line),
                error=line.get("error"),
            )
        case {"layer": "run", "action": "delivery"}:
            return replace(run, outcome=str(line.get("outcome", "")))
        case {"layer": "inference"}:
            return _with_step(run, line)
        case {"layer": "tool", "action": "execute_start"}:
            return replace(run, tools=(*run.tools, str(line.get("name", ""))))
        case {"layer": "tool"}:
            return replace(run, failed=run.failed + (line.get("error") is not None))
        case _:
            return run


def _with_step(run: RunSummary, line: Line) -> RunSummary:
    cost = line.get("cost")
    return replace(
        run,
        steps=max(run.steps, _number(line, "step")),
        tokens=run.tokens + _number(line, "prompt") + _number(line, "completion"),
        cost=run.cost if cost is None else (run.cost or 0.0) + cost,
    )


def _number(line: Line, name: str) -> int:
    value: Any = line.get(name)
    return value if isinstance(value, int) else 0


def _seconds(line: Line) -> float:
    value: Any = line.get("duration_ms")
    return value / 1000 if isinstance(value, int | float) else 0.0
