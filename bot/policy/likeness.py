"""Whether texts are nearly the same. Pure."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache


def is_like(text: str, *others: str, least: float) -> bool:
    """Whether it shares at least so many percent of its characters, in order, with one of the
    others.

    What differs too much in length for that is not compared: as nearly always.
    """
    # Of both together, 2 * shared / (one + other) is the share; shared is at most the shorter.
    shortest = len(text) * least / (200 - least)
    longest = len(text) * (200 - least) / least
    near = [one for one in others if shortest <= len(one) <= longest]
    # Where it is less it is 0, and found out sooner.
    return bool(near) and any(_ratio()(text, one, score_cutoff=least) for one in near)


@cache
def _ratio() -> Callable[..., float]:
    from rapidfuzz import fuzz  # 4 MiB: most processes never need it

    return fuzz.ratio
