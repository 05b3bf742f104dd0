"""The rig of a cluster works, with little to do, and sees what goes wrong. What it measures here means nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, text

from adapters.broker.partitions import partition_of
from tests.bench import cluster
from tests.bench.cluster import ONE, PARTITIONS, SEVERAL, Backlog, Outcome, accounts, faults_in, measure_cluster, told
from tests.bench.driver import Driver
from tests.bench.trial import Load
from tests.system.rigs.test_rig import figures

FEW = Load(calm=0, warm_up=2, messages=4, groups=4, seconds=0)
WELL = Outcome(
    {ONE: [figures(cpu=1, p50=2)], SEVERAL: [figures(cpu=1.9, p50=9)]},
    (1.5, 4.5),
    (Backlog(1, 200, 2.0, 3.0), Backlog(3, 200, 1.0, 3.0)),
)


@pytest.mark.timeout(300)
@pytest.mark.skipif(bool(cluster.why_not()), reason=cluster.why_not() or "it can be")
async def test_a_cluster_is_measured_beside_one_process_and_loses_nothing() -> None:
    outcome = await measure_cluster(rounds=1, load=FEW, kills=1, backlog=60)
    (one,), (several,) = outcome.results[ONE], outcome.results[SEVERAL]
    assert one.cpu > 0
    assert several.cpu > 0
    assert several.beside > 0
    assert len(outcome.gaps) == 1
    assert [(one.workers, one.events, one.faults) for one in outcome.backlogs] == [(1, 60, ()), (3, 60, ())]
    assert cluster.as_json(outcome)["ratios"][f"{SEVERAL}/{ONE}"]["cpu"]["median"] > 0
    assert "60 events, workers: 3" in told(outcome)


def test_each_partition_has_one_of_the_accounts() -> None:
    assert [partition_of(account, PARTITIONS) for account in accounts()] == list(range(PARTITIONS))


def test_figures_stand_beside_their_bounds() -> None:
    def words(outcome: Outcome) -> list[str]:
        return [line.split()[-1] for line in told(outcome).splitlines() if line.endswith(("holds", "SLIPPED"))]

    assert words(WELL) == ["holds"] * 5
    slow = Outcome({ONE: [figures(cpu=1, p50=2)], SEVERAL: [figures(cpu=2.1, p50=10.5)]}, (1.0, 5.1), WELL.backlogs)
    assert words(slow) == ["SLIPPED"] * 3 + ["holds"] * 2
    lossy = replace(WELL, backlogs=(replace(WELL.backlogs[0], faults=("7: out of order",)),))
    assert words(lossy)[3:] == ["SLIPPED"]
    assert "7: out of order" in told(lossy)
    assert WELL.backlogs[0].rate == 100


@pytest.mark.parametrize(
    ("rows", "fault"),
    [
        (("1", "2", "3"), []),
        (("1", "3"), ["7: 2 events of 3"]),
        (("1", "2", "2", "3"), ["7: 1 events twice"]),
        (("2", "1", "3"), ["7: out of order"]),
        ((), ["7: 0 events of 3"]),
    ],
)
def test_what_is_lost_twice_or_out_of_order_is_seen(tmp_path: Path, rows: tuple[str, ...], fault: list[str]) -> None:
    nowhere: Any = None
    engine, driver = create_engine(f"sqlite:///{tmp_path}/j.db"), Driver(nowhere, 7)
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE messages (id INTEGER PRIMARY KEY, self_id INTEGER, message_id TEXT)"))
        for row in ("9", *rows):
            connection.execute(
                text("INSERT INTO messages (self_id, message_id) VALUES (:who, :row)"),
                {"who": 8 if row == "9" else 7, "row": row},
            )
    assert faults_in(engine, [driver], {0: 3}) == fault
    engine.dispose()
