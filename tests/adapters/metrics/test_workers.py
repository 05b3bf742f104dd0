"""What a worker shows of its part is what Prometheus reads."""

from __future__ import annotations

from types import SimpleNamespace

from adapters.metrics.cluster import Work, WorkCollector


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
    work, link = Work(8, workers=1), SimpleNamespace(is_up=True)
    for partition in (0, 5):
        work.links[partition] = link
        work.begin(partition)
    assert figures(work)["frostagent_broker_up"] == 1
    work.links[5] = SimpleNamespace(is_up=False)
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
