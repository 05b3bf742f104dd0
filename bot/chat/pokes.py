"""Somebody pokes the bot: one line now and then, without a model."""

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

APART: Final = 60.0  # seconds between two that are answered in one place: people poke in rows
TURNED_BACK: Final = 3600.0  # seconds after which an older time is that of another clock


def _read(value: str) -> float | None:
    try:
        return float(value)
    except ValueError:
        return None


POKED: Final = PlaceSetting[float]("poked", read=_read, write=lambda time: f"{time:.3f}")


class AnsweredPokes:
    """A poke has no id: the server's time of it tells it apart from those that are answered later,
    and is the same whenever it is told, and to whichever process.
    """

    def __init__(self, settings: SettingsStore) -> None:
        self._settings = settings

    def has(self, poke: Poked) -> bool:
        """Whether it, or one of about its time or after it, was answered there."""
        last = self._settings.get(POKED, poke.conversation)
        return last is not None and last - TURNED_BACK < poke.time < last + APART

    def add(self, poke: Poked) -> None:
        """It is answered: written down before its answer is, so that no other process answers."""
        self._settings.put(POKED, poke.conversation, poke.time)


MAX_PLACES: Final = 2000

HERE: Final = Phrase("在呢，有事 @ 我说就好。", "I am here: mention me when you want something.")
HERE_IN_PRIVATE: Final = Phrase("在呢，有什么事直接说。", "I am here: just say what you want.")
CATALOGUE.register(__name__, globals())


class Pokes:
    """Answers pokes of the bot, where it may speak and to whom it listens. A poke has no words to
    tell whose language it is: the operator's choice does.
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
        """Say that it is there, unless it was said there lately."""
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
        """Whether the same person would be answered, had they spoken."""
        as_said = MessageReceived(
            self_id=event.self_id,
            time=event.time,
            conversation=event.conversation,
            message_id="",
            sender=Sender(event.user_id),
            segments=(Mention(event.self_id),),
        )
        return self._wake_classifier.would_answer(as_said)
