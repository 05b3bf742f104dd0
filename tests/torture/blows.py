"""What hits a cluster, and when: dealt by a seed, so that a run can be lived through once more."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from itertools import count
from random import Random


class Blow(Enum):
    """Who is hit."""

    WORKER = "a worker is killed"
    ALL = "all workers are killed"
    STOP = "a worker is stopped properly"
    FREEZE = "a worker is frozen past its leases"
    GATEWAY = "a gateway is killed"
    BROKER = "the broker is killed"
    DATABASE = "the database cannot be reached"
    CRASH = "the database is killed"
    CUT_OFF = "a worker is cut off from the database, the broker or both"


def deal(seed: int) -> Iterator[tuple[Blow, Random]]:
    """The blows of a seed, without end, each with dice of its own; every kind comes before one comes twice.

    However much is drawn in a moment, the later ones are the same.
    """
    chance, deck = Random(f"{seed}"), list[Blow]()
    for number in count():
        if not deck:
            deck = list(Blow)
            chance.shuffle(deck)
        yield deck.pop(), Random(f"{seed} moment {number}")
