"""Lines for the owner from parts that are built before his postbox."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from bot.domain.masking import for_the_log
from bot.domain.tongue import Pair, Tongue
from bot.speaking.owner import Owner

logger = logging.getLogger(__name__)


def always() -> bool:
    """A bot alone says everything itself."""
    return True


class Troubles:
    """Keeps it until somebody passes it on. It `speaks` for its process where that has several
    bots, each of which sees the same outages.
    """

    def __init__(self, speaks: Callable[[], bool] = always) -> None:
        self._speaks = speaks
        self._told: asyncio.Queue[Pair] = asyncio.Queue()

    def tell(self, line: Pair) -> None:
        """Something went wrong that only the owner can mend."""
        self._told.put_nowait(line)

    def tell_once(self, line: Pair) -> None:
        """The same of what every bot of this process sees: one of them tells it."""
        if self._speaks():
            self.tell(line)

    async def pass_on(self, owner: Owner) -> None:
        """Tell the owner, until cancelled; lines are of one kind whose
        English is the same up to its bracket."""
        while True:
            line = await self._told.get()
            owner.tell(line[Tongue.ENGLISH].partition(" (")[0], line[owner.tongue])

    @contextmanager
    def logged_at_the_end(self) -> Iterator[None]:
        """After the block, tell the log what nobody was there any more to pass on."""
        try:
            yield
        finally:
            while not self._told.empty():
                logger.error(for_the_log(self._told.get_nowait()[Tongue.ENGLISH]))
