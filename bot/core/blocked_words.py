"""The operator's word list, and text folded for comparison with it: without width, case, blanks and
invisible characters.

`Ｌ Ｏ\u200bＡＮ` and `loan` are equal. Similar letters of other alphabets stay different.
"""

from __future__ import annotations

from typing import Protocol
from unicodedata import category, normalize


class BlockedWords(Protocol):
    """The operator's word list. Methods return the number of the matching line, 0 for none."""

    def stops(self, text: str) -> int:
        """Whether a message with this text is not answered."""
        ...

    def blocks_answer(self, text: str) -> int:
        """Whether this text must not be sent."""
        ...


LONGEST = 500  # characters of an entry

GONE = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Me", "Mn", "Zl", "Zp", "Zs"})
FILLERS = frozenset("\u115f\u1160\u2800\u3164\uffa0")
MOST = 20_000  # characters whose category is cached


class _Kept(dict[int, int | None]):
    """For `str.translate`: maps each character to itself, and removed ones to None; cached."""

    def __missing__(self, code: int) -> int | None:
        char = chr(code)
        kept = None if category(char) in GONE or char in FILLERS else code
        if len(self) < MOST:
            self[code] = kept
        return kept


_KEPT = _Kept()


def fold_text(text: str) -> str:
    """The folded text, in linear time; idempotent."""
    plain = normalize("NFKC", text).casefold()
    return normalize("NFKC", plain.translate(_KEPT)).translate(_KEPT)
