"""Which messages come in: each once, none of our own, and nothing of earlier processes' before the
journal was read.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from bot.conversation.intake.ages import Ages
from bot.conversation.intake.seen import SeenMessages
from bot.domain.events import MessageReceived

logger = logging.getLogger(__name__)


class Door:
    """Lets messages in, `meet`s each that is new, and counts those that come again."""

    def __init__(
        self, *, seen: SeenMessages, ages: Ages, meet: Callable[[MessageReceived], None]
    ) -> None:
        self._seen = seen
        self._ages = ages
        self._meet = meet
        self.duplicates = 0  # since the start

    def lets_in(self, message: MessageReceived) -> bool:
        """Whether this message is taken now; from then on it is known."""
        if self._seen.put_off(message) or message.is_own:
            return False
        is_known = not self._seen.claim(message)
        if is_known or (not self._ages.is_missed(message) and self._seen.was_found(message)):
            self.duplicates += 1
            logger.debug("message %s in %s came again", message.message_id, message.conversation)
            return False
        if not self._seen.is_earlier(message):
            self._ages.hear_new(message)
        self._meet(message)
        return True
