"""How alike two texts are, and their letters alone."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Collection, Iterable
from functools import cache

UNHEARD = re.compile(r"[\W_]+")
ASCII_UNHEARD = bytes(code for code in range(128) if not chr(code).isalnum())
WIDE_MARKS = re.compile("[\u3000-\u3003\u3008-\u3011\u2018-\u201d！（），：；？［］]+")
"""Of Chinese writing: no letter comes of them, and to fold them is most of what folding costs."""


def is_similar(text: str, *others: str, least: float) -> bool:
    """Whether it shares at least so many percent of its characters, in order, with one of the
    others.

    What differs too much in length for that is not compared: as nearly always.
    """
    return is_similar_to_any(text, comparable_lengths(len(text), others, least=least), least=least)


def is_similar_to_any(text: str, others: Collection[str], *, least: float) -> bool:
    """The same of others that have `comparable_lengths`."""
    # Where it is less it is 0, and found out sooner.
    return bool(others) and any(_ratio()(text, one, score_cutoff=least) for one in others)


def comparable_lengths(length: int, others: Iterable[str], *, least: float) -> list[str]:
    """Those of the others that a text of this length can share so much with."""
    # Of both together, 2 * shared / (one + other) is the share; shared is at most the shorter.
    shortest, longest = length * least / (200 - least), length * (200 - least) / least
    return [one for one in others if shortest <= len(one) <= longest]


@cache
def _ratio() -> Callable[..., float]:
    from rapidfuzz import fuzz  # 4 MiB: most processes never need it

    return fuzz.ratio


def letters_only(text: str) -> str:
    """Letters and digits only, folded: what people hear when they read it."""
    if text.isascii():  # five to fifteen times as fast
        return text.encode().translate(None, ASCII_UNHEARD).lower().decode()
    return UNHEARD.sub("", unicodedata.normalize("NFKC", WIDE_MARKS.sub("", text)).casefold())
