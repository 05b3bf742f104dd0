"""The operator's word list, and text as words are looked for in it: without width, case, blanks,
and all that nobody sees.

`Ｌ Ｏ\u200bＡＮ` and `loan` are the same. Letters of other alphabets that look alike stay what they
are.
"""

from __future__ import annotations

from typing import Protocol
from unicodedata import category, normalize


class BlockedWords(Protocol):
    """The operator's word list. Each answers with the line of it that counts, 0 for none."""

    def stops(self, text: str) -> int:
        """Whether what somebody says in these words is not answered."""
        ...

    def blocks_answer(self, text: str) -> int:
        """Whether this is not said."""
        ...


LONGEST = 500  # characters of what is looked for

GONE = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Me", "Mn", "Zl", "Zp", "Zs"})
FILLERS = frozenset("\u115f\u1160\u2800\u3164\uffa0")
MOST = 20_000  # characters whose kind is remembered


class _Kept(dict[int, int | None]):
    """For `str.translate`: each character by itself, None for what goes; remembered."""

    def __missing__(self, code: int) -> int | None:
        char = chr(code)
        kept = None if category(char) in GONE or char in FILLERS else code
        if len(self) < MOST:
            self[code] = kept
        return kept


_KEPT = _Kept()


def fold_text(text: str) -> str:
    """The text in its plainest form, in time linear in its length; folding it again changes
    nothing.
    """
    plain = normalize("NFKC", text).casefold()
    return normalize("NFKC", plain.translate(_KEPT)).translate(_KEPT)
