"""Reports when the event loop stalls for more than a second.

The loop records the time four times a second, at no cost per message. A thread checks it and,
during a stall, records what the loop is doing.
"""

from __future__ import annotations

import logging
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice

from frostagent.types.ports import Clock

logger = logging.getLogger(__name__)

STALL = 1.0  # seconds
TICK = 0.25
DEEPEST = 8  # innermost frames shown


class Watchdog:
    """`run` is its task. Each stall is logged when it is over, and its seconds are passed to
    `stalled`. One ten times as long is also logged while it lasts.
    """

    def __init__(
        self, *, clock: Clock, stalled: Callable[[float], None], stall: float = STALL
    ) -> None:
        self._clock = clock
        self._stalled = stalled
        self._stall = stall
        self._ticked = clock.monotonic()
        self._seen = ""
        self._over = threading.Event()

    async def run(self) -> None:
        """Watch the loop this runs in, until cancelled."""
        with self._thread(threading.get_ident()):
            while True:
                self._ticked = self._clock.monotonic()
                await self._clock.sleep(TICK)
                stood = self._clock.monotonic() - self._ticked - TICK
                if stood > self._stall:
                    doing, self._seen = self._seen, ""
                    where = f", in: {doing}" if doing else ""
                    logger.warning("the event loop stood still for %.1f s%s", stood, where)
                    self._stalled(stood)

    @contextmanager
    def _thread(self, loop: int) -> Iterator[None]:
        watching = threading.Thread(target=self._watch, args=(loop,), daemon=True, name="watchdog")
        watching.start()
        try:
            yield
        finally:
            self._over.set()

    def _watch(self, loop: int) -> None:
        told = 0.0  # the tick whose long stall was logged
        while not self._over.wait(TICK):
            ticked = self._ticked
            stood = self._clock.monotonic() - ticked - TICK
            if stood > self._stall and not self._seen:
                self._seen = doing(loop)
            if stood > 10 * self._stall and told != ticked:
                told = ticked
                logger.error(
                    "the event loop stands still for %.0f s now, in: %s", stood, self._seen
                )


def doing(thread: int) -> str:
    """Return a thread's innermost calls in one line, the innermost last.

    Source lines are not looked up, since that would keep each file in memory.
    """
    frame = sys._current_frames().get(thread)  # noqa: SLF001  # the one way to see another thread's stack
    inner = [] if frame is None else islice(traceback.walk_stack(frame), DEEPEST)
    stack = [
        f"{call.f_code.co_filename.rpartition('/')[2]}:{line} {call.f_code.co_name}"
        for call, line in inner
    ]
    return " > ".join(reversed(stack))
