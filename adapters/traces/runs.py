"""The file of runs (LOG_RUNS): one line of JSON for each event, for those who grep, and for `python
-m bot runs`.

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
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from msgspec import Struct

from adapters.traces.lines import Line, delivery_line, first_line, line_of
from bot.domain.journal import Entry, TurnClosed
from bot.domain.ports import Clock
from bot.domain.run import RunEvent

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
    """Fits `Follower`. `mask` takes the secrets out of a text; `content` lets in what people and
    models said.
    """

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
                line = line_of(event, at, content=self._content)
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
