"""Questions that nobody comes to, because too many wait: counted, and their askers shown that."""

from __future__ import annotations

import logging

from bot.domain.events import MessageReceived
from bot.speaking.gestures import NOT_NOW, Gestures

logger = logging.getLogger(__name__)


class Overflow:
    """Shows whoever asked that he is not answered."""

    def __init__(self, *, gestures: Gestures) -> None:
        self._gestures = gestures
        self.count = 0  # questions, since the start

    def take(self, message: MessageReceived) -> None:
        """This question is not answered. Never waits."""
        self.count += 1
        logger.warning(
            "message %s in %s is not answered: too many are waiting",
            message.message_id,
            message.conversation,
        )
        self._gestures.react(message, NOT_NOW)
