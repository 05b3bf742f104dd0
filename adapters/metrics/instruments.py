"""Counters and histograms that are plain numbers until somebody asks for them.

The library's own take a lock and check their labels at each event: 75 calls for one message
(measured). These are counted and read in the event loop alone.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Generic, TypeVar


class Count:
    """A number that only rises."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0.0

    def inc(self, amount: float = 1) -> None:
        """So much more."""
        self.value += amount


class Times:
    """How long things took, in seconds, counted by upper `bounds`, which rise."""

    __slots__ = ("_bounds", "_counts", "sum")

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def observe(self, seconds: float) -> None:
        """One more took so long."""
        self._counts[bisect_left(self._bounds, seconds)] += 1
        self.sum += seconds

    def buckets(self) -> list[tuple[float, int]]:
        """How many took at most so long, for each bound; the last one is infinite."""
        return list(zip((*self._bounds, float("inf")), accumulate(self._counts), strict=True))


Instrument = TypeVar("Instrument", Count, Times)


class Family(Generic[Instrument]):
    """Instruments of one `name`, by their labels' values; one there is from the first time it is
    asked for. `what` says what they count.
    """

    def __init__(
        self, name: str, what: str, names: Sequence[str], make: Callable[[], Instrument]
    ) -> None:
        self.name, self.what, self.names = name, what, names
        self._make: Callable[[], Instrument] = make
        self.members: dict[tuple[str, ...], Instrument] = {}

    def labels(self, *values: str) -> Instrument:
        """The one with these values, in the order of the labels."""
        member = self.members.get(values)
        if member is None:
            member = self.members[values] = self._make()
        return member
