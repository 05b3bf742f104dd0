"""The account's own messages, as servers tell them that do: by its owner's hand, or the bot's."""

from __future__ import annotations

from bot.domain.events import MessageSent
from bot.memory.history import History
from bot.speaking.outbox import Outbox


class OwnMessages:
    """Whoever quotes one is understood, and a send that nobody confirmed is known by it."""

    def __init__(self, history: History, outbox: Outbox) -> None:
        self._history = history
        self._outbox = outbox

    def take(self, event: MessageSent) -> None:
        """The account has said something."""
        self._history.know(event.message)
        self._outbox.seen(event.message)
