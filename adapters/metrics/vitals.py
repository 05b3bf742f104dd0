"""Figures that are looked at only when somebody asks, not counted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, generate_latest
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
    """The vitals as metrics."""

    def __init__(self, vitals: Vitals) -> None:
        self._vitals = vitals

    def render(self) -> bytes:
        """All of them, in Prometheus' text format (0.0.4)."""
        registry = CollectorRegistry()
        registry.register(self)
        return generate_latest(registry)

    def collect(self) -> Iterator[Metric]:
        """Each with its value."""
        vitals = self._vitals
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
