from __future__ import annotations

from prometheus_client import CollectorRegistry, generate_latest

from adapters.metrics.vitals import Vitals, VitalsCollector


def test_the_vitals_are_asked_for_at_each_scrape() -> None:
    now = [
        Vitals(lanes=2, queued=1, online=1, offline=0, duplicates=7, overflow=5, reconnects=3),
        Vitals(lanes=0, queued=0, online=0, offline=1, duplicates=8, overflow=0, reconnects=3),
    ]
    registry = CollectorRegistry()
    registry.register(VitalsCollector(lambda: now[0]))
    first = generate_latest(registry).decode().splitlines()
    for line in (
        "frostagent_lanes 2.0",
        "frostagent_queued 1.0",
        'frostagent_accounts{online="true"} 1.0',
        'frostagent_accounts{online="false"} 0.0',
        "frostagent_duplicates_total 7.0",
        "frostagent_overflow_total 5.0",
        "frostagent_reconnects_total 3.0",
    ):
        assert line in first
    now.pop(0)
    assert 'frostagent_accounts{online="false"} 1.0' in generate_latest(registry).decode().splitlines()
