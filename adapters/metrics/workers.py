"""The metrics of a worker of a cluster, beside those of its bots."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from adapters.metrics.work import Work


class WorkCollector(Collector):
    """A family of each."""

    def __init__(self, work: Work) -> None:
        self._work = work

    def collect(self) -> Iterator[Metric]:
        """Whether the broker is up is not shown where no partition is: nobody needs it there."""
        work = self._work
        for name, what, value in (
            ("partitions", "Into how many parts the accounts are divided.", work.partitions),
            ("worker_partitions", "Partitions at work here.", len(work.held)),
            ("workers", "Workers that are there, this one included.", work.workers),
        ):
            yield GaugeMetricFamily(f"frostagent_{name}", what, value)
        if work.links:
            up = int(all(link.is_up for link in work.links.values()))
            yield GaugeMetricFamily(
                "frostagent_broker_up", "Whether the broker can be reached.", up
            )
        yield CounterMetricFamily("frostagent_worker_taken", "Partitions taken.", work.taken)
        yield CounterMetricFamily(
            "frostagent_set_aside", "Events that nobody could handle.", work.set_aside
        )
