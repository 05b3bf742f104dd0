"""Ten thousand accounts on paper: docs/cluster.md tells what comes of it."""

from __future__ import annotations

import pytest

from tests.bench.accounts import WORKED, evening
from tests.cases import each_case


@each_case("seed", range(3))
@each_case("workers", [64, 32, 20])
def test_accounts_are_spread_and_a_loss_moves_little_more_than_was_lost(seed: int, workers: int) -> None:
    told, most = evening(seed=seed, partitions=64, workers=workers, busy=100), -(-64 // workers)
    assert 1 < told.fullest < 1.4
    assert 1 <= told.lost <= most + 1
    assert 1 <= told.came <= most
    assert told.busiest < WORKED
    assert told.late is not None
    assert told.deepest < 20_000


@pytest.mark.parametrize("seed", range(3))
def test_half_of_the_peak_is_worked_off_by_a_worker_for_each_partition_and_the_whole_is_not(seed: int) -> None:
    half, whole = (evening(seed=seed, partitions=64, workers=64, busy=busy) for busy in (400, 1000))
    assert half.late is not None
    assert half.deepest < 20_000
    assert whole.busiest > WORKED
    assert whole.late is None


@each_case("seed", range(10))
def test_the_whole_peak_is_worked_off_by_three_clusters(seed: int) -> None:
    told = evening(seed=seed, partitions=64, workers=65, busy=334, clusters=3)
    assert told.busiest < WORKED
    assert told.late is not None
    assert told.deepest < 20_000


def test_the_same_seed_is_the_same_evening() -> None:
    assert evening(seed=5, partitions=8, workers=3, busy=40) == evening(seed=5, partitions=8, workers=3, busy=40)
