"""The runs there were, as an operator sees them, and how lists are told.

Apart from `inspection`, which needs all that tools need: asking for the runs begins in a third of
the time.
"""

from __future__ import annotations

import json
import logging
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, closing
from datetime import datetime
from itertools import islice

from pydantic_core import to_jsonable_python

from adapters.logs.output import UNSAFE
from adapters.storage.database import Database
from adapters.storage.queries.export import lines_of_run, run_lines
from adapters.traces.run_log import RunSummary, chain, interrupted, read_lines, summaries
from bot.cli.layout import columns
from bot.core.journal import Undelivered
from config.settings import Settings
from frostagent.tracing import Line
from frostagent.types.runs import Stop

logger = logging.getLogger(__name__)

DELIVERIES = {
    Stop.ANSWERED: "arrived after all",
    Undelivered.NOT_DELIVERED: "not delivered",
    Undelivered.UNCONFIRMED: "not confirmed by QQ",
}

Journal = Callable[[], AbstractContextManager[Database]]


def latest_runs(settings: Settings, journal: Journal, *, limit: int) -> list[RunSummary]:
    """The latest runs, the newest first: of the file LOG_RUNS, of the journal where that is not
    set.
    """
    if settings.log_runs is not None:
        found = list(islice(summaries(_lines_of_file(settings)), limit))
        return list(map(interrupted, found)) if _nobody_runs(settings) else found
    with journal() as database:
        with database.reading() as connection:
            found = summaries(run_lines(connection, limit=limit, content=False))
        return found if database.holder() is not None else list(map(interrupted, found))


def _nobody_runs(settings: Settings) -> bool:
    """Whether no process has the journal; False where that cannot be known."""
    if not hasattr(os, "fork"):  # Windows has no lock to look at
        return False
    try:
        with closing(
            Database(settings.store_url.get_secret_value(), migrate=lambda _: None)
        ) as database:
            return database.holder() is None
    except Exception:
        logger.debug("nobody knows whether a bot runs", exc_info=True)
        return False


def lines_of(settings: Settings, journal: Journal, run: str) -> list[Line]:
    """All that is known of one run; in the file, the beginning of its id will do. Texts with
    LOG_CONTENT=1 only.
    """
    if settings.log_runs is not None:
        return chain(_lines_of_file(settings), run)
    with journal() as database, database.reading() as connection:
        return list(lines_of_run(connection, run, content=settings.log_content))


def _lines_of_file(settings: Settings) -> Iterator[Line]:
    if settings.log_runs is None or not settings.log_runs.exists():
        return
    with settings.log_runs.open(encoding="utf-8", errors="replace") as file:
        yield from read_lines(file)


def runs_to_text(runs: Iterable[RunSummary]) -> str:
    """A line for each run, in columns."""
    heads = (
        "RUN",
        "STARTED",
        "OUTCOME",
        "STEPS",
        "TOOLS",
        "TOKENS",
        "COST",
        "SECONDS",
        "CONVERSATION",
    )
    return columns([heads, *map(_row, runs)])


def _row(run: RunSummary) -> tuple[str, ...]:
    times = Counter(run.tools)
    tools = " ".join(name if number == 1 else f"{name}*{number}" for name, number in times.items())
    failed = f" ({run.failed} failed)" if run.failed else ""
    return (
        run.run,
        _here(run.started),
        run.outcome,
        str(run.steps),
        f"{tools or '-'}{failed}",
        str(run.tokens),
        "-" if run.cost is None else f"${run.cost:.4f}",
        f"{run.seconds:.1f}",
        run.conversation,
    )


def chain_to_text(lines: Iterable[Line]) -> str:
    """A run from its start to its end: each answer of the model, then the calls it made."""
    return "\n".join(
        f"{_here(str(line['timestamp']), 'milliseconds')}  {_told(line)}".translate(UNSAFE)
        for line in lines
    )


def _here(moment: str, to: str = "seconds") -> str:
    """A moment in UTC as the clock on the wall has it, with its zone: 2026-01-31 20:00:00+08:00."""
    try:
        return datetime.fromisoformat(moment).astimezone().isoformat(" ", to)
    except ValueError:
        return moment


def _told(line: Line) -> str:
    match line:
        case {"layer": "run", "action": "end"}:
            why = f": {line['error']}" if line.get("error") else ""
            return (
                f"run {line['run']} {line['outcome']}{why}, {line['steps']} "
                f"steps{_took(line)}{_said(line, 'text')}"
            )
        case {"layer": "run", "action": "delivery"}:
            return (
                f"run {line['run']}, its answer: {DELIVERIES.get(line['outcome'], line['outcome'])}"
            )
        case {"layer": "run", "action": action}:
            where = (
                f" in {line['conversation']} for {line['asker']}" if "conversation" in line else ""
            )
            return f"run {line['run']} {action}{where}"
        case {"layer": "inference"}:
            calls = f", calls {' '.join(line['calls'])}" if line.get("calls") else ""
            tokens = (
                ""
                if line.get("prompt") is None
                else f", {line['prompt']} + {line['completion']} tokens"
            )
            answer = (
                f"step {line['step']}: {line['model'] or 'the model'} answered {line['response']}"
            )
            return f"{answer} ({line['finish']}{tokens}{calls}){_took(line)}{_said(line, 'text')}"
        case {"layer": "tool", "action": "execute_start"}:
            return (
                f"step {line['step']}: {line['name']} {line['call_id']} starts{_said(line, 'args')}"
            )
        case {"layer": "tool"}:
            how = (
                "cancelled" if line["action"] == "execute_cancelled" else line.get("error") or "ok"
            )
            result = "" if line.get("error") else _said(line, "result")
            return (
                f"step {line['step']}: {line['name']} {line['call_id']} "
                f"{how}{_took(line)}{_waited(line)}{result}"
            )
        case _:
            return json.dumps(line, ensure_ascii=False)


def _took(line: Line) -> str:
    return f", {line['duration_ms'] / 1000:.2f} s" if line.get("duration_ms") is not None else ""


def _waited(line: Line) -> str:
    milliseconds = line.get("waited_ms") or 0
    return f" after {milliseconds / 1000:.2f} s" if milliseconds >= 10 else ""


def _said(line: Line, name: str) -> str:
    match line.get(name):
        case None | "":
            return ""
        case str(text):
            return f"  {text}"
        case value:
            return f"  {json.dumps(value, ensure_ascii=False)}"


# --- how it is told -------------------------------------------------------------------------------


def to_json(value: object) -> str:
    """The value as JSON, for programs."""
    return json.dumps(to_jsonable_python(value, fallback=str), ensure_ascii=False, indent=2)
