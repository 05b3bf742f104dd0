"""A store that shows each entry to observers, and the log of questions and answers."""

from __future__ import annotations

import logging
from collections.abc import Collection, Coroutine, Sequence
from typing import Any, Final

from bot.core.conversation import Conversation
from bot.core.events import MessageReceived
from bot.core.journal import (
    ENTRIES,
    Entry,
    KnownLine,
    LogQuery,
    Recovery,
    Remembered,
    Spoken,
    TurnClosed,
    TurnOpened,
)
from bot.core.ports import JournalObserver, Store
from frostagent.types.messages import AssistantMessage
from frostagent.types.speech import Text

logger = logging.getLogger(__name__)


class ObservedStore:
    """A `Store` that shows each entry to the observers of its type before storing it. An observer
    that raises does not stop the others.
    """

    def __init__(self, store: Store, witnesses: Sequence[JournalObserver]) -> None:
        self._store = store
        self._witnesses = tuple(witnesses)
        self._by_kind = {
            kind: tuple(witness for witness in self._witnesses if kind in witness.sees)
            for kind in ENTRIES
        }

    def before(self, witness: JournalObserver) -> ObservedStore:
        """Return the same store with one more observer, called first."""
        return ObservedStore(self._store, (witness, *self._witnesses))

    def put(self, *entries: Entry) -> None:
        """Store entries. Never waits, never raises."""
        self._show(entries)
        self._store.put(*entries)

    def commit(self, *entries: Entry) -> Coroutine[Any, Any, bool]:
        """Store entries, and return True once they are durable."""
        self._show(entries)
        return self._store.commit(*entries)

    def remember(self, conversation: Conversation) -> Coroutine[Any, Any, Remembered | None]:
        return self._store.remember(conversation)

    def find(
        self, conversation: Conversation, message_id: str
    ) -> Coroutine[Any, Any, MessageReceived | None]:
        return self._store.find(conversation, message_id)

    def heard(
        self, conversation: Conversation, message_ids: Collection[str]
    ) -> Coroutine[Any, Any, Collection[str] | None]:
        return self._store.heard(conversation, message_ids)

    def latest(
        self, conversation: Conversation
    ) -> Coroutine[Any, Any, Collection[KnownLine] | None]:
        return self._store.latest(conversation)

    def search(self, query: LogQuery) -> Coroutine[Any, Any, tuple[MessageReceived, ...] | None]:
        return self._store.search(query)

    def described(self, digest: str) -> Coroutine[Any, Any, str]:
        return self._store.described(digest)

    def spoken(self, turn_id: str) -> Coroutine[Any, Any, Spoken | None]:
        return self._store.spoken(turn_id)

    def recover(self) -> Coroutine[Any, Any, Recovery | None]:
        return self._store.recover()

    def _show(self, entries: tuple[Entry, ...]) -> None:
        for entry in entries:
            for witness in self._by_kind.get(type(entry), ()):
                try:
                    witness.see(entry)
                except Exception:
                    logger.exception("witness %s broke on %s", type(witness).__name__, entry.type)


def shown_first(store: Store, witness: JournalObserver) -> ObservedStore:
    """Return a store that shows each entry to `witness` first. Observed stores are not nested,
    because each layer costs time per message.
    """
    if type(store) is ObservedStore:  # a subclass may do more
        return store.before(witness)
    return ObservedStore(store, (witness,))


class ContentLog:
    """Logs the question and the answer or error of each turn at INFO, with LOG_CONTENT=1 only."""

    sees: Final = frozenset({TurnOpened, TurnClosed})

    def see(self, entry: Entry) -> None:
        match entry:
            case TurnOpened(turn_id=turn_id, question=question):
                words = "".join(
                    segment.text for segment in question.segments if isinstance(segment, Text)
                ).strip()
                logger.info("run %s was asked by %d: %s", turn_id, question.sender.user_id, words)
            case TurnClosed(turn_id=turn_id, stop=stop, error=error) if error:
                logger.info("run %s %s: %s", turn_id, stop, error)
            case TurnClosed(turn_id=turn_id, round=(*_, AssistantMessage(text=text))):
                logger.info("run %s %s: %s", turn_id, entry.undelivered or "answered", text)
            case _:
                pass
