"""The parent's side of the victims: starting lives, following what they tell, ending them."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections import Counter
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from bot.core import codec
from bot.core.journal import Entry
from tests.torture.crossings import Death
from tests.torture.victim import ENTRIES

ROOT = Path(__file__).parents[2]
LINE = 2**24  # bytes


class Life:
    """One life of the service. `died` is where it killed itself, None where it did not; `code` how it ended.

    `recovering` is how much it crossed before it took an event, None where it came to none.
    """

    def __init__(self) -> None:
        self.pid = 0
        self.promised: list[Entry] = []
        self.crossed: Counter[str] = Counter()
        self.died: Death | None = None
        self.code: int | None = None
        self.recovering: int | None = None
        self.settled = asyncio.Event()
        self._accounts = 0
        self._counted = asyncio.Event()

    def hear(self, word: str, value: Any) -> None:
        """Take one line of what it tells."""
        match word:
            case "born":
                self.pid = value
            case "promised":
                self.promised += codec.read(ENTRIES, json.dumps(value))
            case "ready":
                self.recovering = value
            case "died":
                self.died = Death(*value)
            case "settled":
                self.settled.set()
            case "accounts":
                self._accounts = value
                self._counted.set()
            case "crossed":
                self.crossed.update(value)
            case "ended":
                self.code = value
            case _:
                raise AssertionError(f"a victim told {word}")

    async def settle(self) -> None:
        """Until it has nothing more to do."""
        self.settled.clear()
        self.end(signal.SIGUSR1)
        await self.settled.wait()

    async def wait_alone(self) -> None:
        """Until it has noticed that nobody is connected to it any more."""
        self._accounts = 1
        while self._accounts:
            self._counted.clear()
            self.end(signal.SIGUSR2)
            await self._counted.wait()

    def end(self, how: signal.Signals) -> None:
        """Send it a signal, unless it is gone."""
        if self.code is None and self.pid:
            with suppress(ProcessLookupError):  # it is gone, and we have not read so yet
                os.kill(self.pid, how)


class Nursery:
    """The process that victims are forked from; `log` takes what they write to standard error."""

    def __init__(self, log: Path) -> None:
        self.log = log
        self._process: asyncio.subprocess.Process | None = None

    async def __aenter__(self) -> Self:
        with self.log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                *("-m", "tests.torture.victim"),
                cwd=ROOT,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                limit=LINE,
            )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process is not None
        self._process.terminate()
        await self._process.communicate()

    async def bear(self, life: Life, settings: dict[str, Any], death: Death | None) -> None:
        """Start a life, and follow it to its end; the one before it must have ended."""
        assert self._process is not None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        asked = {"settings": settings, "death": asdict(death) if death else None}
        self._process.stdin.write(json.dumps(asked).encode() + b"\n")
        try:
            while life.code is None:
                line = await self._process.stdout.readline()
                if not line:
                    raise AssertionError(f"the nursery ended: see {self.log}")
                life.hear(*json.loads(line))
        finally:
            life.end(signal.SIGKILL)
