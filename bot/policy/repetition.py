"""Was it said already? Pure; keeps the final words from repeating what `send_message` said in the same turn.

Said already is: the same letters and digits; at least `PART` of them verbatim inside what was said; or nearly the same
text (`rapidfuzz` ratio of at least `NEAR` percent) with the very same numbers and negations, since "26" for "25" and
"can" for "cannot" are corrections, not repetitions.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from rapidfuzz import fuzz

NEAR = 90.0  # percent
PART = 12  # letters and digits; a shorter piece may occur anywhere by chance
COMPARABLE = 8  # letters and digits from which on a ratio means anything

NUMBERS = re.compile(r"\d+")
NEGATIONS = re.compile(r"[不没無无非否别未勿莫]|\b(?:not?|never|none|cannot|can't|won't|don't|isn't|n't)\b")


def already_said(text: str, said: Sequence[str]) -> bool:
    """Whether the text adds nothing to what was said, apart from blanks, marks and case.

    Marks and emoji alone are said already only where they were said as they are.
    """
    new = bare(text)
    if not new:
        return not text.strip() or any(text.strip() in old for old in said)
    return any(_repeats(text, new, old) for old in (*said, "".join(said)))


def _repeats(text: str, new: str, old_text: str) -> bool:
    old = bare(old_text)
    if new == old or (len(new) >= PART and new in old):
        return True
    if min(len(new), len(old)) < COMPARABLE or fuzz.ratio(new, old) < NEAR:
        return False
    return _facts(text) == _facts(old_text)


def _facts(text: str) -> tuple[list[str], list[str]]:
    """What turns a sentence into another one though most of its letters stay: its numbers and negations."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return NUMBERS.findall(folded), sorted(NEGATIONS.findall(folded))


def bare(text: str) -> str:
    """Letters and digits only, folded: what people hear when they read it."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return "".join(char for char in folded if char.isalnum())
