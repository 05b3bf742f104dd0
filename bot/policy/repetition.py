"""Was it said already? Pure; keeps the final words from repeating what `send_message` said in the same turn."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence


def already_said(text: str, said: Sequence[str]) -> bool:
    """Whether the text, apart from blanks, marks and case, is (a good part of) what was said, or all of it again.

    A short answer that only happens to occur in something longer, as "2026" in "I look up the year 2026", is new; so
    are marks and emoji that were not said as they are.
    """
    new = bare(text)
    if not new:
        return not text.strip() or any(text.strip() in old for old in said)
    return any(_is_part(new, bare(old)) for old in (*said, "".join(said)))


def _is_part(new: str, old: str) -> bool:
    return new in old and len(new) * 3 >= len(old)


def bare(text: str) -> str:
    """Letters and digits only, folded: what people hear when they read it."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return "".join(char for char in folded if char.isalnum())
