"""Was it said already? Pure; keeps the final words from repeating what `send_message` said in the same turn."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence


def already_said(text: str, said: Sequence[str]) -> bool:
    """Whether the text, apart from blanks, marks and case, is (part of) what was said, or all of it again in order."""
    new = bare(text)
    if not new:
        return True
    return any(new in bare(old) for old in said) or new in bare("".join(said))


def bare(text: str) -> str:
    """Letters and digits only, folded: what people hear when they read it."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return "".join(char for char in folded if char.isalnum())
