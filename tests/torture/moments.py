"""Which deaths: drawn by a seed from what a life without death crosses, so that every label has its turn."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass

from tests.torture.crossings import Death

SECOND = 4  # every so many moments the next life dies too


@dataclass(frozen=True, slots=True)
class Moment:
    """When the service dies: in its first life, and perhaps in the next one again."""

    number: int
    deaths: tuple[Death, ...]

    def __str__(self) -> str:
        return " then ".join(map(str, self.deaths)) or "no death"


def draw(seed: int, number: int, first: Mapping[str, int], second: int) -> list[Moment]:
    """So many moments; `first` is how often each label is crossed in a first life, `second` how much in the next.

    They go round the labels, so that the first ones cover as many as there are.
    """
    chance = random.Random(seed)
    moments: list[Moment] = []
    labels: list[str] = []
    used: set[Death] = set()
    while len(moments) < number:
        if not labels:
            labels = sorted(first)
            chance.shuffle(labels)
        label = labels.pop()
        free = [place for place in range(1, first[label] + 1) if Death(label, place) not in used]
        death = Death(label, chance.choice(free or range(1, first[label] + 1)))
        used.add(death)
        again = chance.randint(1, second)
        dies_again = len(moments) % SECOND == SECOND - 1
        moments.append(Moment(len(moments), (death, Death("", again)) if dies_again else (death,)))
    return moments
