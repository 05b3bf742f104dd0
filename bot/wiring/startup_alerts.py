"""Lines for the owner from parts that are built before his postbox."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager

from bot.domain.language import Language, Pair
from bot.domain.masking import text_for_log
from bot.speaking.owner_alerts import Owner

logger = logging.getLogger(__name__)


class StartupAlerts:
    """Keeps it until somebody passes it on. Of several bots, which all see the same outages, one
    `speaks` of them.
    """

    def __init__(self, *, speaks: bool = True) -> None:
        self._speaks = speaks
        self._told: asyncio.Queue[Pair] = asyncio.Queue()

    def tell(self, line: Pair) -> None:
        """Something went wrong that only the owner can mend."""
        self._told.put_nowait(line)

    def tell_once(self, line: Pair) -> None:
        """The same of what every bot of a cluster sees: one of them tells it, others log it."""
        if self._speaks:
            self.tell(line)
        else:
            logger.info(text_for_log(line[Language.ENGLISH]))

    async def pass_on(self, owner: Owner) -> None:
        """Tell the owner, until cancelled; lines are of one kind whose
        English is the same up to its bracket."""
        while True:
            line = await self._told.get()
            owner.tell(line[Language.ENGLISH].partition(" (")[0], line[owner.tongue])

    @contextmanager
    def logged_at_the_end(self) -> Iterator[None]:
        """After the block, tell the log what nobody was there any more to pass on."""
        try:
            yield
        finally:
            while not self._told.empty():
                logger.error(text_for_log(self._told.get_nowait()[Language.ENGLISH]))
