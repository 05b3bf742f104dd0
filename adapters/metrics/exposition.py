"""Prometheus' text format. Its library is loaded on the first request, because most processes never
need its two megabytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

from prometheus_client import (
    CollectorRegistry,
    GCCollector,
    PlatformCollector,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from adapters.metrics.metrics import Count, Family, Metrics, Times, Today, Vitals
from bot.core.jobs import JobState

Collectors: TypeAlias = Callable[[], Sequence[Collector]]
"""Collectors read on each request."""


def render(metrics: Metrics, vitals: Vitals, *more: Collector) -> bytes:
    """All metrics, in Prometheus' text format (0.0.4), with the `more` collectors."""
    registry = registry_of(metrics)
    for collector in (VitalsCollector(vitals), *more):
        registry.register(collector)
    return generate_latest(registry)


def registry_of(metrics: Metrics) -> CollectorRegistry:
    """All counters, and the library's own metrics of the process."""
    registry = CollectorRegistry()
    for collector in (ProcessCollector, PlatformCollector, GCCollector):
        collector(registry=registry)
    for counts in metrics.counts:
        registry.register(CountsCollector(counts))
    for times in metrics.times:
        registry.register(TimesCollector(times))
    return registry


class CountsCollector(Collector):
    def __init__(self, family: Family[Count]) -> None:
        self._family = family

    def collect(self) -> Iterator[Metric]:
        family = self._family
        shown = CounterMetricFamily(family.name, family.what, labels=family.names)
        for values, count in family.members.items():
            shown.add_metric(values, count.value)
        yield shown


class TimesCollector(Collector):
    def __init__(self, family: Family[Times]) -> None:
        self._family = family

    def collect(self) -> Iterator[Metric]:
        family = self._family
        shown = HistogramMetricFamily(family.name, family.what, labels=family.names)
        for values, times in family.members.items():
            bounds, counts = zip(*times.buckets(), strict=True)
            written = zip(map(floatToGoString, bounds), counts, strict=True)
            shown.add_metric(values, list(written), times.sum)
        yield shown


class VitalsCollector(Collector):
    def __init__(self, vitals: Vitals) -> None:
        self._vitals = vitals

    def collect(self) -> Iterator[Metric]:
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
        yield CounterMetricFamily(
            "frostagent_withheld",
            "Answers of which the word list withheld something.",
            vitals.withheld,
        )
        waiting = GaugeMetricFamily(
            "frostagent_waiting", "What waits for an owner's word.", labels=["kind"]
        )
        for kind, number in vitals.waiting.items():
            waiting.add_metric([kind], number)
        yield waiting
        for name, what, label, counts in (
            ("approvals", "Calls that waited for an owner's word.", "outcome", vitals.ended),
            ("commands", "Commands that were taken.", "command", vitals.commands),
        ):
            family = CounterMetricFamily(f"frostagent_{name}", what, labels=[label])
            for key, count in counts.items():
                family.add_metric([key], count)
            yield family
        if vitals.servers:
            servers = GaugeMetricFamily(
                "frostagent_mcp_up", "MCP servers: 1 if connected.", labels=["server"]
            )
            for name, is_up in vitals.servers.items():
                servers.add_metric([name], float(is_up))
            yield servers
        if vitals.today is not None:
            yield from _figures_of(vitals.today)


class DiskCollector(Collector):
    def __init__(self, free: int | None) -> None:
        self._free = free

    def collect(self) -> Iterator[Metric]:
        """In bytes; no sample if unknown."""
        what = "Bytes free where the journal is; the media where that is a server's."
        yield GaugeMetricFamily("frostagent_disk_free_bytes", what, self._free)


class JobsCollector(Collector):
    """`counts` are by state; None if the journal cannot be read, and then there is no sample."""

    def __init__(self, counts: Mapping[str, int] | None) -> None:
        self._counts = counts

    def collect(self) -> Iterator[Metric]:
        what = "Reminders, scheduled tasks and feeds that have not ended."
        family = GaugeMetricFamily("frostagent_jobs_waiting", what, labels=["state"])
        for state in JobState if self._counts is not None else ():
            if state is not JobState.ENDED:
                family.add_metric([state], (self._counts or {}).get(state, 0))
        yield family


def _figures_of(today: Today) -> Iterator[Metric]:
    """None is omitted: no ratio without a limit, no cost without a known price."""
    for name, what, value in (
        ("cost", "US dollars since midnight, where the price is known.", today.cost),
        ("tokens", "Tokens since midnight, what is reserved among them.", today.tokens),
        ("reserved_tokens", "Tokens reserved for requests under way.", today.reserved),
        ("rung", "How much is left out because of the limit of all, 0 to 100.", today.rung),
        ("used_ratio", "How much of the limit of all is used.", today.used),
    ):
        if value is not None:
            yield GaugeMetricFamily(f"frostagent_day_{name}", what, value)
