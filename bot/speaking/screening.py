"""The last look at what is said, whoever wants it said: words that the operator withholds leave in
no message to anybody but the owners, who must read what they are asked.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence
from typing import TypeAlias

from bot.domain.actions import SendMessage
from bot.domain.tongue import Tongue
from bot.domain.words import Words
from bot.policy.word_lists import screened
from bot.prompt.language import tongue_of
from bot.speaking.owner import Owner

logger = logging.getLogger(__name__)

Screened: TypeAlias = Callable[[Sequence[SendMessage]], tuple[SendMessage, ...]]
"""The messages as they may leave: as many, in the same order."""

TOLD = (
    "发到 {where} 的话里有词表（WORDS_FILE 第 {line} 行）不让说的，那一句没有发。",
    "A sentence to {where} had words of line {line} of WORDS_FILE in it: it was not said.",
)


class Screen:
    """Takes out of messages what is withheld, and tells the owner.

    `withheld` is how often that was, since the start.
    """

    def __init__(self, *, words: Words, owner: Owner, owners: Collection[int]) -> None:
        self._words = words
        self._owner = owner
        self._owners = owners
        self._line = 0
        self.withheld = 0

    def __call__(self, actions: Sequence[SendMessage]) -> tuple[SendMessage, ...]:
        """The messages as they may leave: as many, in the same order."""
        before = tuple(actions)
        if not before or self._is_owners(before[0]):
            return before
        self._line = 0
        after = screened(before, self._withholds, self._tongue_of)
        if self._line:
            self.withheld += 1
            where = before[0].conversation
            logger.warning("withheld from %s: line %d of the word list", where, self._line)
            line = TOLD[self._owner.tongue].format(where=where, line=self._line)
            self._owner.tell(f"words in {where}", line)
        return after

    def _tongue_of(self, words: str) -> Tongue:
        return tongue_of(words, usual=self._owner.tongue)

    def _withholds(self, text: str) -> bool:
        line = self._words.withholds(text)
        self._line = self._line or line
        return bool(line)

    def _is_owners(self, action: SendMessage) -> bool:
        where = action.conversation
        return not where.is_group and where.session_id in self._owners


def as_they_are(actions: Sequence[SendMessage]) -> tuple[SendMessage, ...]:
    """Nothing is withheld."""
    return tuple(actions)
