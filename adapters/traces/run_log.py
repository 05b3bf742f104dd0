"""The file of runs (LOG_RUNS): one JSON line per event, for grep, and the summaries of `python -m
bot runs`.

Written in a thread, so that no run waits for a disk. The file is reopened for each batch, so it may
be moved away at any time. Only its owner can read it, and it holds no secret.
"""

from __future__ import annotations

import json
import logging
import os
import stat
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Final

from msgspec import Struct

from bot.core.journal import Entry, TurnClosed
from frostagent.tracing import Line, line_of, stamp
from frostagent.types.ports import Clock
from frostagent.types.runs import RunEvent


def first_line(at: float) -> Line:
    """A process starts to write (seconds since 1970): all earlier runs have ended, even without an
    end line.
    """
    return {"timestamp": stamp(at), "layer": "process", "action": "start", "run": ""}


def delivery_line(run: str, outcome: str, at: float) -> Line:
    """The delivery of a run's answer, which replaces its turn's outcome: not delivered, not
    confirmed (yet), or arrived after all.
    """
    about = {"layer": "run", "action": "delivery", "run": run}
    return {"timestamp": stamp(at), **about, "outcome": outcome}


def event_line(event: RunEvent, at: float, *, content: bool) -> Line | None:
    """What a run says, as the library has it, but for the asker: a number, as scripts read it."""
    line = line_of(event, at, content=content)
    if line and "asker" in line:
        line["asker"] = int(line["asker"])
    return line


logger = logging.getLogger(__name__)

MAX_WAITING = 10_000  # events that wait for the disk; more are dropped and counted
AT_ONCE = 500
LAST_WRITE = 2.0  # seconds at the end to wait for the disk
OWNER_ONLY = 0o600


class Delivery(Struct, frozen=True):
    run_id: str
    outcome: str


class RunLog:
    """A `TurnFollower`. `mask` removes secrets; `content` includes text of people and models."""

    sees: Final = frozenset({TurnClosed})

    def __init__(
        self, path: Path, *, clock: Clock, mask: Callable[[str], str], content: bool
    ) -> None:
        self._path = path
        self._clock = clock
        self._mask = mask
        self._content = content
        self._waiting: SimpleQueue[tuple[float, RunEvent | Delivery] | None] = SimpleQueue()
        self._lost = 0
        self._in_trouble = False
        self._is_torn = False

    def notice(self, event: RunEvent) -> None:
        """Queue an event for the file. Never waits."""
        self._take_in(event)

    def see(self, entry: Entry) -> None:
        """Queue the outcome of a turn whose answer is not known to have arrived."""
        if isinstance(entry, TurnClosed) and entry.undelivered is not None:
            self.settled(entry.turn_id, entry.undelivered)

    def settled(self, turn_id: str, outcome: str) -> None:
        self._take_in(Delivery(turn_id, outcome))

    def _take_in(self, event: RunEvent | Delivery) -> None:
        if self._waiting.qsize() >= MAX_WAITING:
            self._lost += 1
        else:
            self._waiting.put((self._clock.now(), event))

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Write while the block runs, and at its end the rest."""
        writer = threading.Thread(target=self._write_all, daemon=True, name="runs")
        writer.start()
        try:
            yield
        finally:
            self._waiting.put(None)
            writer.join(LAST_WRITE)

    # --- the thread -------------------------------------------------------------------------------

    def _write_all(self) -> None:
        self._append([json.dumps(first_line(self._clock.now())).encode() + b"\n"])
        while True:
            batch = self._take()
            self._append(
                [line for item in batch if item is not None and (line := self._line(*item))]
            )
            if None in batch:
                return

    def _take(self) -> list[tuple[float, RunEvent | Delivery] | None]:
        """Return all queued events, waiting for the first."""
        batch = [self._waiting.get()]
        try:
            while len(batch) < AT_ONCE and batch[-1] is not None:
                batch.append(self._waiting.get_nowait())
        except Empty:
            pass
        return batch

    def _line(self, at: float, event: RunEvent | Delivery) -> bytes:
        try:
            line: Line | None
            if isinstance(event, Delivery):
                line = delivery_line(event.run_id, event.outcome, at)
            else:
                line = event_line(event, at, content=self._content)
            if line is None:
                return b""
            # Masked as values and as a whole: inside nested JSON a secret is escaped differently.
            text = self._mask(json.dumps(masked(line, self._mask), ensure_ascii=False, default=str))
            return text.encode("utf-8", "replace") + b"\n"
        except Exception:
            logger.exception("an event of run %s has no line", event.run_id)
            return b""

    def _append(self, lines: list[bytes]) -> None:
        if not lines:
            return
        try:
            self._write(b"".join(lines))
        except OSError as error:
            self._lose(len(lines), error)
        else:
            self._recover()

    def _lose(self, number: int, error: OSError) -> None:
        self._lost += number
        if not self._in_trouble:
            text = "LOG_RUNS: %s cannot be written (%s): what runs do is lost until it can"
            logger.error(text, self._path, error.strerror)
        self._in_trouble = True

    def _recover(self) -> None:
        if self._lost:
            logger.warning(
                "LOG_RUNS: %s is written again; about %d lines were lost", self._path, self._lost
            )
        self._in_trouble, self._lost = False, 0

    def _write(self, data: bytes) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, OWNER_ONLY)
        try:
            mode = os.fstat(file).st_mode
            if sys.platform != "win32" and stat.S_ISREG(mode) and stat.S_IMODE(mode) != OWNER_ONLY:
                os.fchmod(file, OWNER_ONLY)
            if self._is_torn:
                data = b"\n" + data
            while data:
                written = os.write(file, data)
                # After a partial write on a full disk, the next line must start on its own.
                self._is_torn = data[written - 1 : written] != b"\n"
                data = data[written:]
        finally:
            os.close(file)


def masked(value: Any, mask: Callable[[str], str]) -> Any:
    """The same data with all text masked, including keys."""
    match value:
        case str():
            return mask(value)
        case dict():
            return {masked(name, mask): masked(item, mask) for name, item in value.items()}
        case list() | tuple():
            return [masked(item, mask) for item in value]
        case _:
            return value


RUNNING = "running"
WAITING = "waiting"
INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True)
class RunSummary:
    """One run: its start, place, outcome and usage. `cost` is in dollars, None if unknown.

    `outcome` is a `Stop`'s value, an `Undelivered`'s if the answer is not known to have arrived,
    `running`, or `waiting` for an approval; runs left running by an ended process are
    `interrupted`. `tools` are the names of its calls, in order.
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
    """Yield the lines of a file, skipping torn or foreign ones."""
    for text in texts:
        try:
            line = json.loads(text)
        except (ValueError, RecursionError):
            continue
        if isinstance(line, dict) and isinstance(line.get("run"), str) and "layer" in line:
            yield line


def summaries(lines: Iterable[Line]) -> list[RunSummary]:
    """All runs, latest start first."""
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
    """The run after its process ended; one waiting for an approval continues in the next."""
    return replace(run, outcome=INTERRUPTED) if run.outcome == RUNNING else run


def chain(lines: Iterable[Line], run: str) -> list[Line]:
    """The lines of one run, in order; `run` may be a unique prefix of its id."""
    found: dict[str, list[Line]] = {}
    for line in lines:
        if line["layer"] != "process" and line["run"].startswith(run):
            found.setdefault(line["run"], []).append(line)
    return found.get(run) or (next(iter(found.values())) if len(found) == 1 else [])


def _after(run: RunSummary, line: Line) -> RunSummary:
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
