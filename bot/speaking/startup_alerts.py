"""Alerts for owners from parts that are built before the part that sends them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager

from bot.speaking.owner_alerts import Owner
from frostagent.text.language import Bilingual, Language, text_in
from frostagent.text.masking import text_for_log

logger = logging.getLogger(__name__)


class StartupAlerts:
    """Keeps alerts until they can be sent. Of several bots, which all see the same outages, one
    `speaks`.
    """

    def __init__(self, *, speaks: bool = True) -> None:
        self._speaks = speaks
        self._told: asyncio.Queue[Bilingual] = asyncio.Queue()

    def tell(self, line: Bilingual) -> None:
        """Queue an alert about something that only an owner can fix."""
        self._told.put_nowait(line)

    def tell_once(self, line: Bilingual) -> None:
        """Queue an alert that every bot of a cluster sees: one sends it, the others log it."""
        if self._speaks:
            self.tell(line)
        else:
            logger.info(text_for_log(text_in(Language.ENGLISH, line)))

    async def pass_on(self, owner: Owner) -> None:
        """Send alerts until cancelled. Alerts are of one kind if their English is the same up to
        the first bracket.
        """
        while True:
            line = await self._told.get()
            owner.tell(
                text_in(Language.ENGLISH, line).partition(" (")[0], text_in(owner.tongue, line)
            )

    @contextmanager
    def logged_at_the_end(self) -> Iterator[None]:
        """After the block, log the alerts that were not sent."""
        try:
            yield
        finally:
            while not self._told.empty():
                logger.error(text_for_log(text_in(Language.ENGLISH, self._told.get_nowait())))
