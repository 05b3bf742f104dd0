"""Partitions are shared out evenly, whoever comes and goes."""

from __future__ import annotations

import random
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from bot.cluster.partition_manager import Moves, moves


def test_one_takes_all_that_is_free() -> None:
    assert moves(partitions=4, workers=1, me=(0, "a"), others={}, free=[2, 0, 3]) == Moves((2, 0, 3))


def test_of_two_each_takes_half() -> None:
    assert moves(partitions=8, workers=2, me=(1, "a"), others={}, free=[5, 6, 7, 4]) == Moves((5, 6, 7))


def test_who_has_more_than_his_part_gives_the_rest_away() -> None:
    assert moves(partitions=8, workers=3, me=(8, "a"), others={}, free=[]) == Moves(give=5)
    assert moves(partitions=8, workers=3, me=(3, "a"), others={"b": 3, "c": 2}, free=[]) == Moves()


def test_who_comes_when_not_all_can_have_as_many_gets_one_too() -> None:
    assert moves(partitions=4, workers=3, me=(4, "z"), others={}, free=[]) == Moves(give=2)
    assert moves(partitions=4, workers=3, me=(0, "b"), others={"z": 2}, free=[1, 3]) == Moves((1,))
    assert moves(partitions=4, workers=3, me=(2, "a"), others={"z": 2}, free=[]) == Moves(give=1)
    assert moves(partitions=4, workers=3, me=(2, "z"), others={"a": 2}, free=[]) == Moves()


def test_one_partition_stays_where_it_is() -> None:
    assert moves(partitions=1, workers=5, me=(1, "a"), others={}, free=[]) == Moves()
    assert moves(partitions=1, workers=5, me=(0, "b"), others={"a": 1}, free=[]) == Moves()


def test_who_sees_nobody_at_all_counts_himself() -> None:
    assert moves(partitions=2, workers=0, me=(0, "a"), others={}, free=[0, 1]) == Moves((0, 1))


@given(partitions=st.integers(1, 64), workers=st.integers(1, 12), seed=st.integers(0, 2**16))
def test_in_a_few_rounds_everything_has_somebody_and_nobody_two_more_than_another(
    partitions: int, workers: int, seed: int
) -> None:
    order = random.Random(seed)
    nobody, names = "", [f"worker {number}" for number in range(workers)]
    had = {number: order.choice([*names, nobody]) for number in range(partitions)}
    for _ in range(4):
        for name in order.sample(names, workers):
            here = [number for number, who in had.items() if who == name]
            free = [number for number, who in had.items() if who == nobody]
            others = Counter(who for who in had.values() if who not in {name, nobody})
            me = len(here), name
            wanted = moves(partitions=partitions, workers=workers, me=me, others=others, free=free)
            assert set(wanted.take) <= set(free)
            had |= dict.fromkeys(wanted.take, name) | dict.fromkeys(here[: wanted.give], nobody)
    counts = [list(had.values()).count(name) for name in names]
    assert sum(counts) == partitions
    assert max(counts) - min(counts) <= 1
    for name in names:
        others = Counter(who for who in had.values() if who != name)
        me = list(had.values()).count(name), name
        assert moves(partitions=partitions, workers=workers, me=me, others=others, free=[]) == Moves()
