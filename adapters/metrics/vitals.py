"""Figures that are looked at only when somebody asks, not counted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector


@dataclass(frozen=True, slots=True, kw_only=True)
class Today:
    """What everybody took since midnight, in US dollars and tokens; so much of the tokens is
    `reserved` for requests under way. `rung` is how much of what people may take is left out, as in
    docs/limits.md; `used` is the share of the limit of all, None where there is none, as `cost` is
    where no price is known.
    """

    cost: float | None
    tokens: float
    reserved: float
    rung: int
    used: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Vitals:
    """How the bot is now. `duplicates`, `overflow`, `reconnects` and `withheld` are since the
    start; `waiting` is how much of each kind waits for an owner's word. Since the start, `ended`
    counts calls that did by outcome, `commands` those that were taken by name. `today` is None
    until what an earlier process took is known.
    """

    lanes: int
    queued: int
    online: int
    offline: int
    duplicates: int
    overflow: int
    reconnects: int
    withheld: int
    waiting: Mapping[str, int]
    ended: Mapping[str, int]
    commands: Mapping[str, int]
    today: Today | None


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
        if vitals.today is not None:
            yield from _figures_of(vitals.today)


def _figures_of(today: Today) -> Iterator[Metric]:
    """None is not shown: no share where there is no limit, no cost where no price is known."""
    for name, what, value in (
        ("cost", "US dollars since midnight, where the price is known.", today.cost),
        ("tokens", "Tokens since midnight, what is reserved among them.", today.tokens),
        ("reserved_tokens", "Tokens reserved for requests under way.", today.reserved),
        ("rung", "How much is left out because of the limit of all, 0 to 100.", today.rung),
        ("used_ratio", "How much of the limit of all is used.", today.used),
    ):
        if value is not None:
            yield GaugeMetricFamily(f"frostagent_day_{name}", what, value)
