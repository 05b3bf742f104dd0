"""Counters and histograms that are plain numbers until somebody asks for them.

The library's own take a lock and check their labels at each event: 75 calls for one message
(measured). These are counted and read in the event loop alone.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import Generic, TypeVar

from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString


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

    def buckets(self) -> list[tuple[str, float]]:
        """How many took at most so long, for each bound as it is written."""
        bounds = map(floatToGoString, (*self._bounds, float("inf")))
        return list(zip(bounds, map(float, accumulate(self._counts)), strict=True))


Instrument = TypeVar("Instrument", Count, Times)


class Family(Generic[Instrument]):
    """Instruments of one name, by their labels' values; one there is from the first time it is
    asked for.
    """

    def __init__(self, make: Callable[[], Instrument]) -> None:
        self._make: Callable[[], Instrument] = make
        self.members: dict[tuple[str, ...], Instrument] = {}

    def labels(self, *values: str) -> Instrument:
        """The one with these values, in the order of the labels."""
        member = self.members.get(values)
        if member is None:
            member = self.members[values] = self._make()
        return member


class CountsCollector(Collector):
    """Shows a family of counts at each scrape."""

    def __init__(self, name: str, what: str, labels: Sequence[str], family: Family[Count]) -> None:
        self._shown = name, what, labels
        self._family = family

    def collect(self) -> Iterator[Metric]:
        """All its counts."""
        name, what, labels = self._shown
        shown = CounterMetricFamily(name, what, labels=labels)
        for values, count in self._family.members.items():
            shown.add_metric(values, count.value)
        yield shown


class TimesCollector(Collector):
    """Shows a family of times at each scrape."""

    def __init__(self, name: str, what: str, labels: Sequence[str], family: Family[Times]) -> None:
        self._shown = name, what, labels
        self._family = family

    def collect(self) -> Iterator[Metric]:
        """All its histograms."""
        name, what, labels = self._shown
        shown = HistogramMetricFamily(name, what, labels=labels)
        for values, times in self._family.members.items():
            shown.add_metric(values, times.buckets(), times.sum)
        yield shown
