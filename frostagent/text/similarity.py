"""The similarity of two texts, and their letters alone."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Collection, Iterable
from functools import cache

UNHEARD = re.compile(r"[\W_]+")
ASCII_UNHEARD = bytes(code for code in range(128) if not chr(code).isalnum())
WIDE_MARKS = re.compile("[\u3000-\u3003\u3008-\u3011\u2018-\u201d！（），：；？［］]+")
"""Chinese punctuation: contains no letters, and normalizing it would take most of the time."""


def is_similar(text: str, *others: str, least: float) -> bool:
    """Whether the text shares at least `least` percent of its characters, in order, with one of the
    others. Texts whose lengths differ too much, as most do, are not compared.
    """
    return is_similar_to_any(text, comparable_lengths(len(text), others, least=least), least=least)


def is_similar_to_any(text: str, others: Collection[str], *, least: float) -> bool:
    """As `is_similar`, for texts from `comparable_lengths`."""
    # A ratio below the cutoff is returned early, as 0.
    return bool(others) and any(_ratio()(text, one, score_cutoff=least) for one in others)


def comparable_lengths(length: int, others: Iterable[str], *, least: float) -> list[str]:
    """The texts that are not too long or too short to reach `least`."""
    # The ratio is 2 * shared / (one + other), and shared is at most the shorter length.
    shortest, longest = length * least / (200 - least), length * (200 - least) / least
    return [one for one in others if shortest <= len(one) <= longest]


@cache
def _ratio() -> Callable[..., float]:
    from rapidfuzz import fuzz  # 4 MiB: most processes never need it

    return fuzz.ratio


def letters_only(text: str) -> str:
    """Letters and digits only, normalized and case-folded."""
    if text.isascii():  # five to fifteen times as fast
        return text.encode().translate(None, ASCII_UNHEARD).lower().decode()
    return UNHEARD.sub("", unicodedata.normalize("NFKC", WIDE_MARKS.sub("", text)).casefold())
