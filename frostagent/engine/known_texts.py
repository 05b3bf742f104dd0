"""Whether what a model says is only what it was told."""

from __future__ import annotations

import re

from frostagent.text.similarity import comparable_lengths, is_similar_to_any, letters_only
from frostagent.types.errors import ERROR

ECHO = 90.0  # percent
LONG_ENOUGH = 8  # letters and digits: people greet in fewer, and are greeted back in the same words
LETTERS = 3  # that say as much as a Chinese character: "Delivered." is an answer, and in our lines
CJK = re.compile(r"[\u3400-\u9fff]")


OUR_ERROR = re.compile(rf"\s*{ERROR}.*\[[A-Z]+(?:_[A-Z]+)+\]\s*", re.DOTALL)
"""A failed call, in the words a model is told of it."""


class KnownTexts:
    """What we told a model ourselves, to look for in what it says: made once for texts that are
    always told, as each answer is looked at.
    """

    def __init__(self, *texts: str) -> None:
        self._texts = tuple(map(letters_only, texts))
        self._all = "\n".join(self._texts)
        self._longest = max(map(len, self._texts), default=0)
        self._near: dict[int, tuple[str, ...]] = {}  # by the length of what is said

    def has(self, text: str) -> bool:
        """Whether the text is nothing but a part of one of these, or nearly all of one."""
        words = letters_only(text)
        if words in self._all or is_similar_to_any(words, self._like(len(words)), least=ECHO):
            return len(words) + (LETTERS - 1) * len(CJK.findall(words)) >= LETTERS * LONG_ENOUGH
        return False  # as nearly all are

    def _like(self, length: int) -> tuple[str, ...]:
        if length > 2 * self._longest:
            return ()
        if (near := self._near.get(length)) is None:
            near = self._near[length] = tuple(comparable_lengths(length, self._texts, least=ECHO))
        return near


def is_call_error(text: str) -> bool:
    """Whether it is what a model is told of a call that failed."""
    return OUR_ERROR.fullmatch(text) is not None
