from __future__ import annotations

from dataclasses import replace

from adapters.metrics.exposition import render
from adapters.metrics.metrics import Metrics, Today, Vitals, together
from tests.fakes import ManualClock

METRICS = Metrics(tools=(), clock=ManualClock())


def test_the_vitals_are_shown_each_under_its_name() -> None:
    vitals = Vitals(
        lanes=2,
        queued=1,
        online=1,
        offline=0,
        duplicates=7,
        overflow=5,
        reconnects=3,
        withheld=4,
        waiting={"friend": 6},
        ended={"expired": 8},
        commands={"usage": 9},
        jobs=11,
        today=Today(cost=0.5, tokens=900.0, reserved=80.0, rung=70, used=0.75),
    )
    shown = render(METRICS, vitals).decode().splitlines()
    for line in (
        "frostagent_lanes 2.0",
        "frostagent_queued 1.0",
        'frostagent_accounts{online="true"} 1.0',
        'frostagent_accounts{online="false"} 0.0',
        "frostagent_duplicates_total 7.0",
        "frostagent_overflow_total 5.0",
        "frostagent_reconnects_total 3.0",
        "frostagent_withheld_total 4.0",
        'frostagent_waiting{kind="friend"} 6.0',
        'frostagent_approvals_total{outcome="expired"} 8.0',
        'frostagent_commands_total{command="usage"} 9.0',
        "frostagent_jobs_waiting 11.0",
        "frostagent_day_cost 0.5",
        "frostagent_day_tokens 900.0",
        "frostagent_day_reserved_tokens 80.0",
        "frostagent_day_rung 70.0",
        "frostagent_day_used_ratio 0.75",
    ):
        assert line in shown
    unlimited = replace(vitals, today=Today(cost=None, tokens=0, reserved=0, rung=0))
    shown_then = render(METRICS, unlimited)
    assert b"frostagent_day_tokens 0.0" in shown_then
    assert b"used_ratio" not in shown_then
    assert b"day_cost" not in shown_then
    assert b"frostagent_day" not in render(METRICS, replace(vitals, today=None))
    assert b"frostagent_jobs_waiting 0.0" in render(METRICS, replace(vitals, jobs=0))
    assert b"frostagent_jobs_waiting" not in render(METRICS, replace(vitals, jobs=None))


def test_of_several_bots_the_sums_are_told_but_not_of_what_each_tells_whole() -> None:
    today = Today(cost=None, tokens=1.0, reserved=0.0, rung=0)
    one = Vitals(
        lanes=2,
        queued=1,
        online=1,
        offline=0,
        duplicates=7,
        overflow=5,
        reconnects=3,
        withheld=2,
        waiting={"call": 1, "draft": 0},
        ended={"allowed": 2},
        commands={"help": 1},
        jobs=2,
        today=None,
    )
    other = replace(one, jobs=3, offline=1, reconnects=4, waiting={"call": 2, "draft": 1}, ended={}, today=today)
    assert together([one]) == one
    assert together([one, other]) == Vitals(
        lanes=4,
        queued=2,
        online=2,
        offline=1,
        duplicates=14,
        overflow=10,
        reconnects=4,
        withheld=4,
        waiting={"call": 3, "draft": 1},
        ended={"allowed": 2},
        commands={"help": 2},
        jobs=5,
        today=today,
    )
    assert together([one, replace(other, jobs=None)]).jobs == 2
    assert together([replace(one, jobs=0), replace(other, jobs=None)]).jobs == 0
    assert together([]).reconnects == 0
