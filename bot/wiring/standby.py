"""A worker that waits for its turn: another one has the journal, or nobody can reach it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import Final

from adapters.storage.claim import Taken
from adapters.storage.lease import Away
from adapters.storage.store import SqlStore
from bot.domain.ports import Clock
from bot.wiring.web import open_standby_web
from config.settings import Settings

PAUSE: Final = 0.5  # seconds between two looks whether the journal is free

logger = logging.getLogger(__name__)


async def first_in_line(
    stack: AsyncExitStack,
    opening: Callable[[], AbstractAsyncContextManager[SqlStore]],
    settings: Settings,
    clock: Clock,
) -> SqlStore:
    """The journal, entered on the stack once it can be had."""
    told = ""
    async with AsyncExitStack() as standby:
        while True:
            try:
                return await stack.enter_async_context(opening())
            except (Taken, Away) as error:
                if not told:
                    await standby.enter_async_context(open_standby_web(settings))
                if told != (told := error.problems[0].what):
                    logger.info("standing by: %s", told)
            await clock.sleep(PAUSE)
