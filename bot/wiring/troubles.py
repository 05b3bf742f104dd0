"""Lines for the owner from parts that are built before his postbox."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from bot.domain.masking import for_the_log
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
        self._told: asyncio.Queue[str] = asyncio.Queue()

    def tell(self, text: str) -> None:
        """Something went wrong that only the owner can mend."""
        self._told.put_nowait(text)

    def tell_once(self, text: str) -> None:
        """The same of what every bot of this process sees: one of them tells it."""
        if self._speaks():
            self.tell(text)

    async def pass_on(self, owner: Owner) -> None:
        """Tell the owner, until cancelled; lines are of one kind up to their bracket."""
        while True:
            text = await self._told.get()
            owner.tell(text.partition(" (")[0], text)

    @contextmanager
    def logged_at_the_end(self) -> Iterator[None]:
        """After the block, tell the log what nobody was there any more to pass on."""
        try:
            yield
        finally:
            while not self._told.empty():
                logger.error(for_the_log(self._told.get_nowait()))
