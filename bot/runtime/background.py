"""Background loops of a bot, and what is read from the journal at the start."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from frostagent.types.ports import Clock

RETRY: Final = 2.0  # seconds between two attempts to load

Load: TypeAlias = Callable[[], Awaitable[bool]]
"""Reads from the journal. Returns False, without a change, if that fails now."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Background:
    """A loop that runs until the bot ends; it may return early if it has nothing left to do. One
    that `needs_account` starts only after the first events, because it uses a connected account at
    once.
    """

    name: str
    run: Callable[[], Coroutine[Any, Any, None]]
    needs_account: bool = False


@asynccontextmanager
async def run_background(loops: Iterable[Background]) -> AsyncIterator[None]:
    """Run all loops while the block runs. None is restarted, because its state may be broken: if
    one fails, its name is logged, the block is cancelled and the error raised, so that the process
    restarts.
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
    """Return once `load` succeeds; it is tried every RETRY seconds."""
    while not await load():
        await clock.sleep(RETRY)


class StartupLoader:
    """Loads the bot's state from the journal: once in this order before events are accepted, and
    then whatever failed, until it succeeds.
    """

    def __init__(self, loads: Iterable[Load], *, clock: Clock) -> None:
        self._left = tuple(loads)
        self._clock = clock

    async def start(self) -> None:
        self._left = tuple([load for load in self._left if not await load()])

    async def run(self) -> None:
        """Retry those that failed, in parallel."""
        if not self._left:
            return
        await self._clock.sleep(RETRY)
        async with asyncio.TaskGroup() as group:
            for load in self._left:
                group.create_task(retry_until_loaded(load, self._clock))
