from __future__ import annotations

from adapters.metrics.cluster import Work


def test_a_partition_that_comes_again_is_taken_again() -> None:
    work = Work(2)
    for _ in range(2):
        work.begin(1)
        work.end(1)
    assert (work.held, work.links, work.taken) == (set(), {}, 2)
