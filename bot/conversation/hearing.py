"""What is kept of a message beside its turn: in the journal, and in the memory of its
conversation.
"""

from __future__ import annotations

from bot.conversation.places import Places
from bot.domain.events import Conversation, MessageReceived
from bot.domain.journal import MessageErased, MessageObserved, MessageOverheard
from bot.domain.ports import Store
from bot.memory.history import History


class Hearing:
    """Writes down what was heard, and what is to be forgotten again."""

    def __init__(self, *, store: Store, history: History, places: Places) -> None:
        self._store = store
        self._history = history
        self._places = places

    def observe(self, message: MessageReceived, *, overheard: bool = True) -> None:
        """Keep a message; `overheard` is one that nobody answers: the next run reads it."""
        self._places.hear(message)
        self._store.put(MessageObserved(message, overheard=overheard))
        self._history.know(message)
        if overheard:
            self._history.overhear(message)

    def overhear(self, message: MessageReceived) -> None:
        """A question that is kept is not answered after all: it is read like any other message."""
        self._store.put(MessageOverheard(message))
        self._history.overhear(message)

    def forget_answer(self, message: MessageReceived, *, kept: bool) -> None:
        """An owner's answer to a request is known as taken, but is nothing that any prompt repeats;
        `kept` where it was observed before.
        """
        if message.has_identity:
            observed = () if kept else (MessageObserved(message, overheard=True),)
            self._store.put(*observed, MessageErased(message.conversation, message.message_id))

    def forget(self, where: Conversation, message_id: str) -> None:
        """A message was recalled."""
        self._store.put(MessageErased(where, message_id))
        self._history.forget_message(where, message_id)
