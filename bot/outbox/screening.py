"""The last look at what is said, whoever wants it said: words that the operator withholds leave in
no message to anybody but the owners, who must read what they are asked.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence

from bot.core.actions import SendMessage
from bot.core.blocked_words import BlockedWords
from bot.outbox.owner_alerts import Owner
from bot.policy.blocked_words import screen_continuation, screen_messages
from bot.prompt.prompt_language import language_of_text
from frostagent.text.language import Language

logger = logging.getLogger(__name__)


TOLD = (
    "发到 {where} 的话里有词表（WORDS_FILE 第 {line} 行）不让说的，那一句没有发。",
    "A sentence to {where} had words of line {line} of WORDS_FILE in it: it was not said.",
)


class Screen:
    """Takes out of messages what is withheld, and tells the owner.

    `withheld` is how often that was, since the start.
    """

    def __init__(self, *, words: BlockedWords, owner: Owner, owners: Collection[int]) -> None:
        self._words = words
        self._owner = owner
        self._owners = owners
        self._line = 0
        self.withheld = 0

    def __call__(
        self, actions: Sequence[SendMessage], earlier: str = "", /
    ) -> tuple[SendMessage, ...]:
        """The messages as they may leave: as many, in the same order. They go on from what was
        said `earlier` in the same place.
        """
        before = tuple(actions)
        if not before or self._is_owners(before[0]):
            return before
        self._line = 0
        alone = screen_messages(before, self._withholds, self._tongue_of)
        after = screen_continuation(earlier, alone, self._withholds, self._tongue_of)
        if after != before:
            self.withheld += 1
            where = before[0].conversation
            logger.warning("withheld from %s: line %d of the word list", where, self._line)
            line = TOLD[self._owner.tongue].format(where=where, line=self._line)
            self._owner.tell(f"words in {where}", line)
        return after

    def _tongue_of(self, words: str) -> Language:
        return language_of_text(words, usual=self._owner.tongue)

    def _withholds(self, text: str) -> bool:
        line = self._words.blocks_answer(text)
        self._line = self._line or line
        return bool(line)

    def _is_owners(self, action: SendMessage) -> bool:
        where = action.conversation
        return not where.is_group and where.session_id in self._owners
