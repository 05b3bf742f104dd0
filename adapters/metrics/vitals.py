"""Figures that are looked at only when somebody asks, not counted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector


@dataclass(frozen=True, slots=True, kw_only=True)
class Vitals:
    """How the bot is now. `duplicates`, `overflow` and `reconnects` are since the start."""

    lanes: int
    queued: int
    online: int
    offline: int
    duplicates: int
    overflow: int
    reconnects: int


class VitalsCollector(Collector):
    """Asks for the vitals at each scrape."""

    def __init__(self, look: Callable[[], Vitals]) -> None:
        self._look = look

    def collect(self) -> Iterator[Metric]:
        """The vitals as metrics."""
        vitals = self._look()
        yield GaugeMetricFamily(
            "frostagent_lanes", "Conversations with something to do.", vitals.lanes
        )
        yield GaugeMetricFamily(
            "frostagent_queued", "Questions that wait for the one before.", vitals.queued
        )
        accounts = GaugeMetricFamily(
            "frostagent_accounts", "Connected accounts.", labels=["online"]
        )
        accounts.add_metric(["true"], vitals.online)
        accounts.add_metric(["false"], vitals.offline)
        yield accounts
        yield CounterMetricFamily(
            "frostagent_duplicates", "Messages that came again.", vitals.duplicates
        )
        yield CounterMetricFamily(
            "frostagent_overflow",
            "Questions not answered, because too many were waiting.",
            vitals.overflow,
        )
        yield CounterMetricFamily(
            "frostagent_reconnects", "Connections after an account's first.", vitals.reconnects
        )
