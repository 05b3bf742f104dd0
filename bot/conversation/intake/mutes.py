"""Where the bot may not speak at the moment: a muted bot cannot answer, and must not run up a bill
thinking either.
"""

from __future__ import annotations

import asyncio
import logging

from bot.domain.events import Conversation, Muted
from bot.domain.ports import Clock

logger = logging.getLogger(__name__)

MAX_MUTE = 30 * 24 * 3600.0  # seconds; QQ's own limit
UNCERTAIN_MUTE = 600.0  # seconds a mute of the whole group, or without an end, is believed


class Mutes:
    """The mutes that are in force, as far as anybody has told."""

    def __init__(self, *, clock: Clock) -> None:
        self._clock = clock
        self._until: dict[Conversation, float] = {}
        self._unknown: asyncio.Queue[int | Conversation] = asyncio.Queue()

    def take(self, event: Muted) -> None:
        """Somebody was muted, or may speak again."""
        if not event.mutes_the_bot:
            return
        if event.seconds == 0:
            if self._until.pop(event.conversation, None):
                logger.info("the mute in %s is lifted", event.conversation)
            return
        # A lift may be missed while nobody is connected, and admins may speak in a silenced group:
        # never trust it long.
        seconds = (
            min(event.seconds, MAX_MUTE) if event.seconds > 0 and event.user_id else UNCERTAIN_MUTE
        )
        self._until[event.conversation] = self._clock.monotonic() + seconds
        logger.warning(
            "muted in %s: messages there are only observed until it is lifted", event.conversation
        )

    def forget(self, account: int) -> None:
        """After a connection nobody knows what was lifted meanwhile: somebody is to ask."""
        self._unknown.put_nowait(account)
        for where in [where for where in self._until if where.platform_id == account]:
            del self._until[where]

    def doubt(self, where: Conversation) -> None:
        """The whole group is muted, and nobody knows whether the bot is one of its admins."""
        self._unknown.put_nowait(where)

    async def next_unknown(self) -> int | Conversation:
        """The next account of whose mutes nothing is known, or the next group with a doubt."""
        return await self._unknown.get()

    def until(self, where: Conversation) -> float:
        """Until when the bot may not speak there, by the clock's monotonic seconds; 0: it may."""
        return self._until.get(where, 0.0)

    def holds_in(self, where: Conversation) -> bool:
        """Whether the bot may not speak there."""
        return bool(self._until) and self.until(where) > self._clock.monotonic()
