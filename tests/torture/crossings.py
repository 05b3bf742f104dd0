"""The fault points of a victim: each call of a port and each write to the disk is a crossing, before and after.

A crossing has a label, as `store.commit(TurnOpened) before`; the n-th of a label, or of all, can be the death of the
process: SIGKILL, in the thread that is there, so nothing after it happens; or SIGTERM, as an operator stops it.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import signal
import sqlite3
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, TypeVar, cast

from sqlalchemy import Engine, event

from adapters.storage.ahead import Ahead
from bot.core.journal import Entry, MessageObserved, SendChanged, SendQueued
from frostagent.types.errors import BotError

Side: TypeAlias = Literal["before", "after", "failed"]

T = TypeVar("T")

WRITES = ("INSERT", "UPDATE", "DELETE", "CREATE")
EMPTYING = "PRAGMA wal_checkpoint"


@dataclass(frozen=True, slots=True)
class Death:
    """The `number`-th crossing of this label, or of all of them where it is empty; from 1.

    `gently`: the process is asked to stop, not killed.
    """

    label: str
    number: int
    gently: bool = False

    @property
    def signal(self) -> signal.Signals:
        return signal.SIGTERM if self.gently else signal.SIGKILL

    def __str__(self) -> str:
        return f"{self.label or 'any'}#{self.number}"


class Crossings:
    """Counts what is crossed, and dies where it was told to.

    `tell` gets a word and its value; what it was told is known to the parent even if the process dies right after.
    """

    def __init__(self, tell: Callable[[str, object], None], death: Death | None) -> None:
        self.counts: Counter[str] = Counter()
        self.busy = 0
        self.news = asyncio.Event()
        self._tell = tell
        self._death = death
        self._lock = threading.Lock()

    def cross(self, label: str) -> None:
        """Pass a point, or die there. May be called from any thread."""
        with self._lock:
            self.counts[label] += 1
            total = self.counts.total()
            death = self._death
            if death and (death.label, death.number) in ((label, self.counts[label]), ("", total)):
                self._tell("died", [label, self.counts[label]])
                os.kill(os.getpid(), death.signal)

    @contextmanager
    def around(self, label: str) -> Iterator[None]:
        """Cross before and after the block."""
        self.cross(f"{label} before")
        self.busy += 1
        try:
            yield
        except BotError:
            self.cross(f"{label} failed")
            raise
        else:
            self.cross(f"{label} after")
        finally:
            self.busy -= 1
            self.news.set()

    def promise(self, entries: list[Entry]) -> None:
        """The store says that these are durable."""
        self._tell("promised", entries)

    def wrap(self, port: T, /) -> T:
        """The port with crossings around its methods; a store also tells what it promises."""
        kind = "store" if hasattr(port, "commit") else "model" if hasattr(port, "complete") else "transport"
        return cast("T", AroundStore(port, self) if kind == "store" else Around(port, self, kind))

    def watch_disk(self) -> None:
        """Cross at each statement that writes to an SQLite file, before and after each commit there, and around each
        write to the file of what is written ahead.
        """
        cross = self.cross

        class Watched(sqlite3.Connection):
            def __init__(self, *args: Any, **kwargs: Any) -> None:
                super().__init__(*args, **kwargs)
                self._wrote = False
                self.set_trace_callback(self._trace)

            def _trace(self, sql: str) -> None:
                verb = sql.split(maxsplit=1)[0].upper()
                if verb in WRITES:
                    self._wrote = True
                    cross(f"disk.{verb.lower()} before")
                elif verb == "COMMIT" and self._wrote:
                    cross("disk.commit before")
                elif sql.startswith(EMPTYING):
                    cross("disk.checkpoint before")

            def commit(self) -> None:
                super().commit()
                if self._wrote:
                    self._wrote = False
                    cross("disk.commit after")

        append, clear = Ahead._append, Ahead.clear

        def appending(ahead: Ahead, lines: bytes) -> bool:
            cross("disk.append before")
            appended = append(ahead, lines)
            cross("disk.append after")
            return appended

        def clearing(ahead: Ahead, number: int) -> None:
            cross("disk.clear before")
            clear(ahead, number)

        setattr(Ahead, append.__name__, appending)
        setattr(Ahead, clear.__name__, clearing)

        @event.listens_for(Engine, "do_connect")
        def _(_dialect: Any, _record: Any, _arguments: Any, parameters: dict[str, Any]) -> None:
            parameters["factory"] = Watched


class Around:
    """A port, with crossings around each of its methods."""

    def __init__(self, port: Any, crossings: Crossings, kind: str) -> None:
        self._port = port
        self._crossings = crossings
        self._kind = kind

    def __getattr__(self, name: str) -> Any:
        inner = getattr(self._port, name)
        if not inspect.iscoroutinefunction(inner):
            return inner

        async def crossing(*args: Any, **kwargs: Any) -> Any:
            with self._crossings.around(f"{self._kind}.{name}"):
                return await inner(*args, **kwargs)

        return crossing


class AroundStore(Around):
    """A store: the label says what is written, and what is promised is told."""

    def __init__(self, port: Any, crossings: Crossings) -> None:
        super().__init__(port, crossings, "store")
        self._put: list[Entry] = []

    def put(self, *entries: Entry) -> None:
        with self._crossings.around(f"store.put({_names(entries)})"):
            self._put += entries
            self._port.put(*entries)

    async def commit(self, *entries: Entry) -> bool:
        with self._crossings.around(f"store.commit({_names(entries)})"):
            self._put += entries
            behind, self._put = self._put, []
            kept: bool = await self._port.commit(*entries)
            if kept:
                self._crossings.promise(behind)
            else:
                self._put = [*behind, *self._put]
        return kept


def _names(entries: tuple[Entry, ...]) -> str:
    return ", ".join(map(_name, entries))


def _name(entry: Entry) -> str:
    name = type(entry).__name__
    match entry:
        case MessageObserved(overheard=True):
            return f"{name} overheard"
        case SendQueued(state=state) | SendChanged(state=state):
            return f"{name} {state}"
        case _:
            return name
