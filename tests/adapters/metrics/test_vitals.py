from __future__ import annotations

from adapters.metrics.vitals import Vitals, VitalsCollector


def test_the_vitals_are_shown_each_under_its_name() -> None:
    vitals = Vitals(lanes=2, queued=1, online=1, offline=0, duplicates=7, overflow=5, reconnects=3)
    shown = VitalsCollector(vitals).render().decode().splitlines()
    for line in (
        "frostagent_lanes 2.0",
        "frostagent_queued 1.0",
        'frostagent_accounts{online="true"} 1.0',
        'frostagent_accounts{online="false"} 0.0',
        "frostagent_duplicates_total 7.0",
        "frostagent_overflow_total 5.0",
        "frostagent_reconnects_total 3.0",
    ):
        assert line in shown
