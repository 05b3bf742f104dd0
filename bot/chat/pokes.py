"""Answers pokes of the bot: a line now and then, without a model."""

from __future__ import annotations

from typing import Final

from cachetools import LRUCache

from bot.chat.wake_classifier import WakeClassifier
from bot.core.conversation import Conversation
from bot.core.events import MessageReceived, Poked, Sender
from bot.core.language import CATALOGUE, Language, Phrase
from bot.core.segments import Mention
from bot.outbox.delivery import Postbox
from bot.settings_store import PlaceSetting, SettingsStore
from frostagent.types.ports import Clock

APART: Final = 60.0  # seconds between two answers in one place: people poke repeatedly
TURNED_BACK: Final = 3600.0  # seconds: an older time than this is from a clock that was set back


def _read(value: str) -> float | None:
    try:
        return float(value)
    except ValueError:
        return None


POKED: Final = PlaceSetting[float]("poked", read=_read, write=lambda time: f"{time:.3f}")


class AnsweredPokes:
    """Records answered pokes. A poke has no id: the server's time identifies it, in every delivery
    and process.
    """

    def __init__(self, settings: SettingsStore) -> None:
        self._settings = settings

    def has(self, poke: Poked) -> bool:
        """Whether it, or a poke of about the same or a later time, was answered there."""
        last = self._settings.get(POKED, poke.conversation)
        return last is not None and last - TURNED_BACK < poke.time < last + APART

    def add(self, poke: Poked) -> None:
        """Record it before it is answered, so that no other process answers it."""
        self._settings.put(POKED, poke.conversation, poke.time)


MAX_PLACES: Final = 2000

HERE: Final = Phrase("在呢，有事 @ 我说就好。", "I am here: mention me when you want something.")
HERE_IN_PRIVATE: Final = Phrase("在呢，有什么事直接说。", "I am here: just say what you want.")
CATALOGUE.register(__name__, globals())


class Pokes:
    """Answers pokes of the bot, if it may speak there and answers the person. A poke has no words
    to show a language: the operator chooses it.
    """

    def __init__(
        self,
        wake_classifier: WakeClassifier,
        postbox: Postbox,
        answered: AnsweredPokes,
        clock: Clock,
        *,
        tongue: Language = Language.CHINESE,
    ) -> None:
        self._tongue = tongue
        self._wake_classifier = wake_classifier
        self._postbox = postbox
        self._answered = answered
        self._clock = clock
        self._lines: LRUCache[Conversation, float] = LRUCache(MAX_PLACES)  # when one was said

    def answer(self, event: Poked) -> None:
        """Answer, unless it did so lately."""
        where, now = event.conversation, self._clock.monotonic()
        if event.target_id != event.self_id or not self._listens_to(event):
            return
        if now - self._lines.get(where, -APART) < APART or self._answered.has(event):
            return
        self._lines[where] = now
        self._answered.add(event)
        line = HERE if where.is_group else HERE_IN_PRIVATE
        self._postbox.remark(where, line.format(self._tongue))

    def _listens_to(self, event: Poked) -> bool:
        """Whether a message of this person would be answered."""
        as_said = MessageReceived(
            self_id=event.self_id,
            time=event.time,
            conversation=event.conversation,
            message_id="",
            sender=Sender(event.user_id),
            segments=(Mention(event.self_id),),
        )
        return self._wake_classifier.would_answer(as_said)
