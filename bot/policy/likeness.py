"""Whether texts are nearly the same. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from functools import cache


def is_like(text: str, *others: str, least: float) -> bool:
    """Whether it shares at least so many percent of its characters, in order, with one of the
    others.

    What differs too much in length for that is not compared: as nearly always.
    """
    return is_near(text, of_length(len(text), others, least=least), least=least)


def is_near(text: str, others: Collection[str], *, least: float) -> bool:
    """The same of others that are `of_length`."""
    # Where it is less it is 0, and found out sooner.
    return bool(others) and any(_ratio()(text, one, score_cutoff=least) for one in others)


def of_length(length: int, others: Iterable[str], *, least: float) -> list[str]:
    """Those of the others that a text of this length can share so much with."""
    # Of both together, 2 * shared / (one + other) is the share; shared is at most the shorter.
    shortest, longest = length * least / (200 - least), length * (200 - least) / least
    return [one for one in others if shortest <= len(one) <= longest]


@cache
def _ratio() -> Callable[..., float]:
    from rapidfuzz import fuzz  # 4 MiB: most processes never need it

    return fuzz.ratio
