"""An event loop whose time passes only when the script lets it, or when nobody is watching.

Every `asyncio.sleep`, `asyncio.timeout` and `Clock` of the service runs on it, while sockets, files
and threads are real. The script asks for time to pass and goes on when all that was due by then is
done: no callback is ready, no thread works, no socket has anything to read.
"""

from __future__ import annotations

import asyncio
import math
import os
import selectors
import time
from collections.abc import Callable
from concurrent.futures import Executor
from datetime import date
from typing import Any, TypeVar, TypeVarTuple

from adapters.storage import files

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

DAY = date(2026, 3, 14)  # a Saturday, wherever this runs
AFTERNOON = 14 * 3600.0
THREADS = 0.05  # real seconds waited for a thread at a time


class ScriptedLoop(asyncio.SelectorEventLoop):
    """`time()` is in seconds since the loop was made; `pass_time` lets some of it pass."""

    def __init__(self) -> None:
        super().__init__(_Selector(self._idle, self._patience))
        self._clock_resolution = 1e-6  # after a year a sum of seconds has no digits below that
        self._passed = 0.0
        self._until = math.inf
        self._settled: asyncio.Future[None] | None = None
        self._in_flight = 0

    def time(self) -> float:
        return self._passed

    async def pass_time(self, seconds: float = 0.0) -> None:
        """Let that much time pass and everything happen that is due in it; 0: what is due now."""
        self._until = self._passed + seconds
        self._settled = self.create_future()
        await self._settled

    def freeze(self) -> None:
        """From now on time passes only in `pass_time`."""
        self._until = self._passed

    def stand_still(self, seconds: float) -> None:
        """That much time is gone in which nothing could happen."""
        self._passed += seconds
        self._until += seconds

    def release(self) -> None:
        """From now on time passes whenever there is nothing to do."""
        self._until = math.inf

    def run_in_executor(self, executor: Executor | None, func: Callable[[*Ts], T], *args: *Ts) -> asyncio.Future[T]:
        future = super().run_in_executor(executor, func, *args)
        self._in_flight += 1
        future.add_done_callback(self._landed)
        return future

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:
        """Wait for the threads in their own time: Python 3.12 and later count 300 seconds of the loop's, which pass at
        once where nothing else is to be done.
        """
        await super().shutdown_default_executor()

    def _landed(self, _: asyncio.Future[Any]) -> None:
        self._in_flight -= 1

    def _patience(self, timeout: float | None) -> float:
        """How many real seconds of nothing it takes to believe that nothing happens.

        What is sent on loopback is there for the other end when `send` returns: 0 where no thread
        works.
        """
        return THREADS if self._is_busy or (timeout is None and self._until == math.inf) else 0.0

    @property
    def _is_busy(self) -> bool:
        """Whether a thread works: one of an executor, or one that looks at the disk, which is no loop's own."""
        return self._in_flight > 0 or bool(files._looks)

    def _idle(self, timeout: float | None) -> None:
        """Nothing is left to be done now: go to what is due next, or tell the script."""
        if self._is_busy:
            return
        due = math.inf if timeout is None else self._passed + timeout
        if due <= self._until and due < math.inf:
            self._passed = due
        elif self._settled is not None and self._until < math.inf:
            self._passed = self._until
            settled, self._settled = self._settled, None
            settled.set_result(None)


class _Selector(selectors.DefaultSelector):
    """Never waits for a timer: where nothing is ready, the loop is told how long it would wait."""

    def __init__(self, idle: Callable[[float | None], None], patience: Callable[[float | None], float]) -> None:
        super().__init__()
        self._idle = idle
        self._patience = patience

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        found = super().select(0)
        return found or ([] if timeout is not None and timeout <= 0 else self._wait(timeout))

    def _wait(self, timeout: float | None) -> list[tuple[selectors.SelectorKey, int]]:
        os.sched_yield()  # a thread of the kernel may still be bringing what was sent
        found = super().select(self._patience(timeout))
        if not found:
            self._idle(timeout)
        return found


class ScriptedClock:
    """The service's clock: the loop's time, from so many seconds after the midnight of a day on."""

    def __init__(self, loop: ScriptedLoop, *, begins: float = AFTERNOON, day: date = DAY) -> None:
        self._loop = loop
        self._began = time.mktime(day.timetuple()) + begins

    def now(self) -> float:
        return self._began + self._loop.time()

    def monotonic(self) -> float:
        return self._loop.time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
