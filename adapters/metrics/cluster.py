"""Metrics of a cluster: a worker's share of the accounts; a gateway's sockets and broker."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct
from prometheus_client import (
    CollectorRegistry,
    GCCollector,
    PlatformCollector,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from adapters.metrics.work import Work


class WorkCollector(Collector):
    def __init__(self, work: Work) -> None:
        self._work = work

    def collect(self) -> Iterator[Metric]:
        """The state of the broker is omitted without partitions, since it does not matter then."""
        work = self._work
        for name, what, value in (
            ("partitions", "Into how many parts the accounts are divided.", work.partitions),
            ("worker_partitions", "Partitions at work here.", len(work.held)),
            ("workers", "Workers that are there, this one included.", work.workers),
        ):
            yield GaugeMetricFamily(f"frostagent_{name}", what, value)
        if work.links:
            up = int(all(is_up() for is_up in work.links.values()))
            yield GaugeMetricFamily(
                "frostagent_broker_up", "Whether the broker can be reached.", up
            )
        yield CounterMetricFamily("frostagent_worker_taken", "Partitions taken.", work.taken)
        yield CounterMetricFamily(
            "frostagent_set_aside", "Events that nobody could handle.", work.set_aside
        )


class GatewayVitals(Struct, frozen=True, kw_only=True):
    """Current figures; counts are since the start."""

    online: int
    offline: int
    reconnects: int
    published: int
    waiting: int
    lost: int
    refused: int
    is_up: bool


class GatewayCollector(Collector):
    def __init__(self, vitals: GatewayVitals) -> None:
        self._vitals = vitals

    def collect(self) -> Iterator[Metric]:
        now = self._vitals
        accounts = GaugeMetricFamily(
            "frostagent_accounts",
            "Connected accounts.",
            labels=["online"],
        )
        accounts.add_metric(["true"], now.online)
        accounts.add_metric(["false"], now.offline)
        yield accounts
        yield CounterMetricFamily(
            "frostagent_reconnects", "Connections of accounts that had one before.", now.reconnects
        )
        yield CounterMetricFamily(
            "frostagent_gateway_events", "Events that the broker has confirmed.", now.published
        )
        yield GaugeMetricFamily(
            "frostagent_gateway_waiting",
            "Events not confirmed yet.",
            now.waiting,
        )
        yield CounterMetricFamily(
            "frostagent_gateway_lost",
            "Events that found no room.",
            now.lost,
        )
        yield CounterMetricFamily(
            "frostagent_gateway_refused",
            "Calls of workers whose part another one had taken over.",
            now.refused,
        )
        yield GaugeMetricFamily(
            "frostagent_broker_up", "Whether the broker can be reached.", int(now.is_up)
        )


def render_gateway(vitals: GatewayVitals) -> bytes:
    """All metrics, in Prometheus' text format (0.0.4)."""
    registry = CollectorRegistry()
    for collector in (ProcessCollector, PlatformCollector, GCCollector):
        collector(registry=registry)
    registry.register(GatewayCollector(vitals))
    return generate_latest(registry)
