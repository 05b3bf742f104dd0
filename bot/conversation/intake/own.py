"""The account's own messages, as servers tell them that do: by its owner's hand, or the bot's."""

from __future__ import annotations

from msgspec.structs import replace

from bot.domain.events import MessageReceived, MessageSent, Sender
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

    def tells(self, message: MessageReceived) -> bool:
        """Whether a message that is told as somebody's is a file the bot has just sent there
        (SnowLuma#442): then it is taken as the account's own.
        """
        if not self._outbox.tells(message):
            return False
        own = replace(message, sender=Sender(message.self_id))
        self._history.know(own)
        self._outbox.seen(own)
        return True
