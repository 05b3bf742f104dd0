"""What hits a cluster, with no cluster: the deck of a seed, and what is said where there can be none."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest

from tests import postgres
from tests.torture import cluster
from tests.torture.__main__ import read_options
from tests.torture.blows import Blow, deal

HANDS = 3


def blows(seed: int) -> list[Blow]:
    return [blow for blow, _ in islice(deal(seed), HANDS * len(Blow))]


def test_every_kind_comes_before_one_comes_twice_and_hands_differ() -> None:
    dealt = blows(1)
    hands = [tuple(dealt[first : first + len(Blow)]) for first in range(0, len(dealt), len(Blow))]
    assert [set(hand) for hand in hands] == [set(Blow)] * HANDS
    assert len(set(hands)) == HANDS


def test_a_seed_deals_the_same_again_and_another_one_something_else() -> None:
    assert blows(1) == blows(1) != blows(2)


def test_what_is_drawn_in_a_moment_changes_no_later_one() -> None:
    calm, busy = deal(1), deal(1)
    for _ in range(2 * len(Blow)):
        (blow, dice), (same, rolled) = next(calm), next(busy)
        assert (blow, dice.random()) == (same, rolled.random())
        rolled.random()


def test_each_moment_has_dice_of_its_own() -> None:
    rolled = {dice.random() for _, dice in islice(deal(1), HANDS * len(Blow))}
    assert len(rolled) == HANDS * len(Blow)
    assert rolled.isdisjoint(dice.random() for _, dice in islice(deal(2), HANDS * len(Blow)))


def test_a_cluster_lives_through_a_hundred_moments_unless_told_otherwise() -> None:
    given = [read_options(words).moments for words in ([], ["--cluster"], ["--cluster", "--moments", "20"])]
    assert given == [400, 100, 20]


@pytest.mark.parametrize("missing", ["RabbitMQ", "PostgreSQL"])
async def test_without_broker_or_database_one_line_says_why_and_it_fails(
    missing: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    there = tmp_path / "rabbitmq-server"
    there.touch()
    monkeypatch.delenv("FROST_TEST_NO_ENGINES", raising=False)
    monkeypatch.setattr(cluster, "PROGRAM", str(tmp_path / "none" if missing == "RabbitMQ" else there))
    monkeypatch.setattr(postgres, "programs", lambda: None if missing == "PostgreSQL" else tmp_path)
    monkeypatch.setattr(cluster, "running", lambda _: pytest.fail("a broker was started"))
    monkeypatch.setattr(postgres, "running", lambda: pytest.fail("a database was started"))
    said: list[str] = []
    assert await cluster.torture_cluster(seed=1, moments=1, say=said.append) == cluster.UNTRIED != 0
    assert [line for line in "".join(said).splitlines() if missing in line] == "".join(said).splitlines() != []
