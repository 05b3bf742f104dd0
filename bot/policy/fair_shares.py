"""Which partitions a worker takes, and how many it gives away, so that all have about as many."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct


class Moves(Struct, frozen=True):
    """The partitions to `take` now, and how many to give away."""

    take: tuple[int, ...] = ()
    give: int = 0


def moves(
    *,
    partitions: int,
    workers: int,
    me: tuple[int, str],
    others: Mapping[str, int],
    free: Sequence[int],
) -> Moves:
    """The moves of one of so many workers where these partitions have nobody.

    `me` is how many it has, and its name; `others` how many those have of whom that is known. Where
    not all can have as many, those keep one more who have the most, by name where that is equal: so
    nothing moves twice, and nothing in vain.
    """
    ahead = sum((count, name) > me for name, count in others.items())
    fewer, more = divmod(partitions, max(1, workers))
    part, here = fewer + (ahead < more), me[0]
    return Moves(give=here - part) if here > part else Moves(tuple(free[: part - here]))
