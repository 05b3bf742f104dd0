"""What a worker shows of its part is what Prometheus reads."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from adapters.metrics.cluster import GatewayVitals, WorkCollector, render_gateway
from adapters.metrics.work import Work


def figures(work: Work) -> dict[str, float]:
    return {sample.name: sample.value for metric in WorkCollector(work).collect() for sample in metric.samples}


def test_one_that_stands_by_knows_of_the_others_alone() -> None:
    assert figures(Work(8, workers=3)) == {
        "frostagent_partitions": 8,
        "frostagent_worker_partitions": 0,
        "frostagent_workers": 3,
        "frostagent_worker_taken_total": 0,
        "frostagent_set_aside_total": 0,
    }


def test_one_at_work_shows_its_partitions_and_a_broker_that_is_away_from_any_of_them() -> None:
    work = Work(8, workers=1)
    for partition in (0, 5):
        work.links[partition] = lambda: True
        work.begin(partition)
    assert figures(work)["frostagent_broker_up"] == 1
    work.links[5] = lambda: False
    work.lay_aside()
    shown = figures(work)
    assert shown["frostagent_broker_up"] == 0
    assert [shown[f"frostagent_{name}"] for name in ("worker_partitions", "worker_taken_total", "set_aside_total")] == [
        *(2, 2, 1)
    ]
    work.end(5)
    assert figures(work)["frostagent_broker_up"] == 1
    assert (figures(work)["frostagent_worker_partitions"], work.taken) == (1, 2)
    work.end(7)


def test_a_partition_that_comes_again_is_taken_again() -> None:
    work = Work(2)
    for _ in range(2):
        work.begin(1)
        work.end(1)
    assert (work.held, work.links, work.taken) == (set(), {}, 2)


VITALS = GatewayVitals(online=2, offline=1, reconnects=3, published=40, waiting=5, lost=6, refused=7, is_up=True)


def test_every_figure_is_there_under_its_name() -> None:
    families = text_string_to_metric_families(render_gateway(VITALS).decode())
    figures = {(sample.name, *sample.labels.values()): sample.value for one in families for sample in one.samples}
    assert {name: value for name, value in figures.items() if name[0].startswith("frostagent")} == {
        ("frostagent_accounts", "true"): 2,
        ("frostagent_accounts", "false"): 1,
        ("frostagent_reconnects_total",): 3,
        ("frostagent_gateway_events_total",): 40,
        ("frostagent_gateway_waiting",): 5,
        ("frostagent_gateway_lost_total",): 6,
        ("frostagent_gateway_refused_total",): 7,
        ("frostagent_broker_up",): 1,
    }
