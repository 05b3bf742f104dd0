"""Questions that nobody comes to, because too many wait: counted, and their askers told, at most
once a minute.
"""

from __future__ import annotations

import logging

from cachetools import TTLCache

from bot.domain.events import Conversation, MessageReceived
from bot.domain.ports import Clock
from bot.policy.apologies import BUSY, apology
from bot.speaking.outbox import Outbox

logger = logging.getLogger(__name__)

QUIET = 60.0  # seconds between two lines in one conversation
MAX_PLACES = 10_000


class Overflow:
    """Tells a conversation that not everybody is answered there."""

    def __init__(self, *, outbox: Outbox, clock: Clock) -> None:
        self._outbox = outbox
        self._told: TTLCache[Conversation, None] = TTLCache(
            MAX_PLACES, QUIET, timer=clock.monotonic
        )
        self.count = 0  # questions, since the start

    def take(self, message: MessageReceived) -> None:
        """This question is not answered. Never waits."""
        self.count += 1
        where = message.conversation
        if where in self._told:
            return
        logger.warning("questions in %s are not answered: too many are waiting", where)
        # Where even this cannot be said, the next one is told.
        if self._outbox.post(apology(message, BUSY)) is not None:
            self._told[where] = None
