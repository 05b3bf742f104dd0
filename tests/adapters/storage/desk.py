"""A writer at work over a database that is a script."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from adapters.storage.ahead import Ahead
from adapters.storage.batches import Put, Written
from adapters.storage.notices import FROM_MEMORY
from adapters.storage.writer import Writer
from bot.core.journal import Entry, RunResumed
from frostagent.clock import SystemClock
from frostagent.types.ports import Clock
from tests.fakes import until
from tests.owners import read


class ScriptedBatches:
    """Takes every batch, unless `failure` is set; may be held up in the middle of one, or behind the next one that is
    written (`holds_next`). With `ahead`, entries can be made durable at once.
    """

    meanwhile = FROM_MEMORY

    def __init__(self, ahead: Ahead | None = None) -> None:
        self._ahead = ahead
        self.written: list[Entry] = []
        self.sizes: list[int] = []
        self.bad: set[Entry] = set()
        self.failure = ""
        self.attempts = 0
        self.going_on = threading.Event()
        self.going_on.set()
        self.holds_next = False

    def write_at_once(self, puts: Sequence[Put]) -> bool:
        return self._ahead is not None and self._ahead.write(puts)

    def write(self, batch: Sequence[Put]) -> Written:
        self.attempts += 1
        self.going_on.wait(10)
        if self.failure:
            return Written(0, failure=self.failure)
        entries = [put.entry for put in batch]
        bad = tuple(place for place, entry in enumerate(entries) if entry in self.bad)
        self.written += [entry for entry in entries if entry not in self.bad]
        self.sizes.append(len(batch))
        if self.holds_next:
            self.holds_next = False
            self.going_on.clear()
        return Written(len(batch), bad)


class Desk:
    """A writer at work, what it writes into, and what it told."""

    def __init__(self, writer: Writer, batches: ScriptedBatches, told: list[str]) -> None:
        self.writer = writer
        self.batches = batches
        self.told = told

    async def fail(self, reason: str = "disk full") -> None:
        """Let the database fail, and wait until that is known."""
        before = len(self.told)
        self.batches.failure = reason
        assert not await self.writer.commit(RunResumed("unlucky"))
        assert len(self.told) == before + 1

    async def recover(self) -> None:
        before = len(self.told)
        self.batches.failure = ""
        await until(lambda: len(self.told) > before)


@asynccontextmanager
async def desk(clock: Clock | None = None, *, ahead: Ahead | None = None, **more: Any) -> AsyncIterator[Desk]:
    batches = ScriptedBatches(ahead)
    told: list[str] = []
    with ThreadPoolExecutor(1) as thread:
        scripted: Any = batches
        more["clock"] = clock or SystemClock()
        writer = Writer(batches=scripted, thread=thread, trouble=read(told), place="frost.db", **more)
        async with asyncio.TaskGroup() as group:
            task = group.create_task(writer.run())
            try:
                yield Desk(writer, batches, told)
            finally:
                await writer.close(task)


def ready(folder: Path) -> Ahead:
    """A file that can be written ahead."""
    ahead = Ahead(folder / "frost.db")
    ahead.open()
    assert ahead.left(0) == []
    return ahead
