"""Was it said already? Pure; keeps the final words from repeating what `send_message` said in the same turn.

Said already is: the same letters and digits; at least `PART` of them verbatim inside what was said; or nearly the same
text (`rapidfuzz` ratio of at least `NEAR` percent) with the very same numerals, negations and opposites. The numbers
must be the same in each case: "26" for "25", "15" for "1.5" and "can" for "cannot" are corrections, not repetitions.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from rapidfuzz import fuzz

NEAR = 90.0  # percent
PART = 12  # letters and digits; a shorter piece may occur anywhere by chance
COMPARABLE = 8  # letters and digits from which on a ratio means anything

NUMBERS = re.compile(r"(?:(?<![0-9a-z])-)?\d+(?:[.:]\d+)*")  # no minus: 3-5, GPT-4
NEGATIONS = re.compile(r"[不没無无非否别未勿莫]|\b(?:not?|never|none|cannot|can't|won't|don't|isn't|n't)\b")
NUMERALS = re.compile(r"[零〇一二两三四五六七八九十百千万亿半]+")
OPPOSITES = re.compile(
    r"[上下左右前后涨跌升降增减大小多少高低快慢早晚进出开关买卖对错好坏男女东西南北内外]"
    r"|\b(?:up|down|on|off|in|out|before|after|more|less|left|right|true|false|yes|open|closed)\b"
)
SENTENCE_ENDS = re.compile(r"[。!?;\n]|\.(?!\d)")


def already_said(text: str, said: Sequence[str]) -> bool:
    """Whether the text adds nothing to what was said, apart from blanks, marks and case.

    Marks and emoji alone are said already only where they were said as they are.
    """
    if not said:
        return not text.strip()
    if not bare(text):
        return not text.strip() or any(text.strip() in old for old in said)
    new = _fold(text)
    return any(_repeats(new, _fold(old)) for old in (*said, "\n".join(said)))


def _repeats(new: str, old: str) -> bool:
    letters, old_letters = _letters(new), _letters(old)
    if letters == old_letters:
        return NUMBERS.findall(new) == NUMBERS.findall(old)
    if len(letters) >= PART and letters in old_letters:
        return _is_part(new, old, old_letters.index(letters), len(letters))
    if min(len(letters), len(old_letters)) < COMPARABLE or fuzz.ratio(letters, old_letters) < NEAR:
        return False
    return all(facts.findall(new) == facts.findall(old) for facts in (NUMBERS, NUMERALS, NEGATIONS, OPPOSITES))


def _is_part(new: str, old: str, at: int, length: int) -> bool:
    """Whether the letters found in `old` mean there what they mean alone: no number is cut, no negation before them."""
    places = [place for place, char in enumerate(old) if char.isalnum()]
    start, end = places[at], places[at + length - 1] + 1
    numbers = [number[0] for number in NUMBERS.finditer(old) if number.end() > start and number.start() < end]
    begin = max((mark.end() for mark in SENTENCE_ENDS.finditer(old, 0, start)), default=0)
    return numbers == NUMBERS.findall(new) and not NEGATIONS.search(old, begin, start)


def bare(text: str) -> str:
    """Letters and digits only, folded: what people hear when they read it."""
    return _letters(_fold(text))


def _letters(folded: str) -> str:
    return "".join(char for char in folded if char.isalnum())


def _fold(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold().replace("−", "-")
