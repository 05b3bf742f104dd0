"""The file of runs (LOG_RUNS): one line of JSON for each event, for those who grep, and what
`python -m bot runs` makes of these lines.

Written in a thread, so that no run waits for a disk. The file is opened anew for what comes at
once, so it may be moved away at any time; only its owner can read it, and no secret stands in it.
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
    """A process begins to write (seconds since 1970): what ran before that has ended, whether it
    says so or not.
    """
    return {"timestamp": stamp(at), "layer": "process", "action": "start", "run": ""}


def delivery_line(run: str, outcome: str, at: float) -> Line:
    """What became of the answer of a run, from then on the outcome of its turn: it was not
    delivered, QQ has not confirmed it (yet), or it arrived after all.
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

MAX_WAITING = 10_000  # events that wait for the disk; more are lost, and counted
AT_ONCE = 500
LAST_WRITE = 2.0  # seconds the end waits for the disk
OWNER_ONLY = 0o600


class Delivery(Struct, frozen=True):
    """What became of the answer of a run."""

    run_id: str
    outcome: str


class RunLog:
    """Fits `TurnFollower`. `mask` takes the secrets out of a text; `content` lets in what people
    and models said.
    """

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
        """Take an event; it is in the file soon. Never waits."""
        self._take_in(event)

    def see(self, entry: Entry) -> None:
        """Take the end of a turn whose answer is not known to have arrived."""
        if isinstance(entry, TurnClosed) and entry.undelivered is not None:
            self.settled(entry.turn_id, entry.undelivered)

    def settled(self, turn_id: str, outcome: str) -> None:
        """Take what became of an answer."""
        self._take_in(Delivery(turn_id, outcome))

    def _take_in(self, event: RunEvent | Delivery) -> None:
        if self._waiting.qsize() >= MAX_WAITING:
            self._lost += 1
        else:
            self._waiting.put((self._clock.now(), event))

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Write while the block runs, and at its end what still waits."""
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
        """All that waits; returns once there is something."""
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
            # Masked as values and as a whole: inside JSON inside JSON a secret is spelt in yet
            # another way.
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
                # A full disk takes a part: what comes next must not become the end of that line.
                self._is_torn = data[written - 1 : written] != b"\n"
                data = data[written:]
        finally:
            os.close(file)


def masked(value: Any, mask: Callable[[str], str]) -> Any:
    """The same data with every text masked, names included."""
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
