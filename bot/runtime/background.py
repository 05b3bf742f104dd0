"""What runs beside everything else for as long as the bot does: loops, and what is read from the
journal at the start.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from frostagent.types.ports import Clock

RETRY: Final = 2.0  # seconds between two tries to read what could not be read

Load: TypeAlias = Callable[[], Awaitable[bool]]
"""Reads something from the journal. False: it cannot be read now, and nothing is changed."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Background:
    """A loop that runs until the bot ends. It may return earlier if it has nothing left to do. One
    that `needs_account` looks at once for a connected account, so it starts after the first events
    have passed.
    """

    name: str
    run: Callable[[], Coroutine[Any, Any, None]]
    needs_account: bool = False


@asynccontextmanager
async def run_background(loops: Iterable[Background]) -> AsyncIterator[None]:
    """Run all loops while the block runs. None is restarted, as its state may be broken: if one
    fails, its name is logged, the block is cancelled and the error raised, so that the process ends
    and is started anew.
    """
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(_run_loop(loop), name=loop.name) for loop in loops]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()


async def _run_loop(loop: Background) -> None:
    try:
        await loop.run()
    except Exception:
        logger.critical("the background loop %r failed", loop.name)
        raise


async def retry_until_loaded(load: Load, clock: Clock) -> None:
    """Return once it is loaded; try every RETRY seconds."""
    while not await load():
        await clock.sleep(RETRY)


class StartupLoader:
    """Loads what the journal keeps for the bot: once before events are taken, in this order, and
    what could not be read then, until it can be.
    """

    def __init__(self, loads: Iterable[Load], *, clock: Clock) -> None:
        self._left = tuple(loads)
        self._clock = clock

    async def start(self) -> None:
        """Try each once."""
        self._left = tuple([load for load in self._left if not await load()])

    async def run(self) -> None:
        """Go on with those that failed, side by side."""
        if not self._left:
            return
        await self._clock.sleep(RETRY)
        async with asyncio.TaskGroup() as group:
            for load in self._left:
                group.create_task(retry_until_loaded(load, self._clock))
