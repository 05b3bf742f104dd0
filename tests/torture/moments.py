"""Which deaths: drawn by a seed from what a life without death crosses, so that every label has its turn."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass

from tests.torture.crossings import Death

SECOND = 4  # every so many moments the next life dies too


@dataclass(frozen=True, slots=True)
class Moment:
    """When the service dies: in its first life, and perhaps in the next one again. Without deaths it is a rehearsal."""

    number: int
    deaths: tuple[Death, ...]

    def __str__(self) -> str:
        return " then ".join(map(str, self.deaths)) or "no death"


def draw(
    seed: int, number: int, first: Mapping[str, int], second: int, *, start: int = 0, gently: bool = False
) -> list[Moment]:
    """So many moments, numbered from `start`, all of them `gently` or none.

    `first` is how often each label is crossed in a first life, `second` how much is crossed in the next. They go round
    the labels, so that the first ones cover as many as there are.
    """
    chance = random.Random(f"{seed} {gently}")
    moments: list[Moment] = []
    labels: list[str] = []
    used: set[Death] = set()
    while len(moments) < number:
        if not labels:
            labels = sorted(first)
            chance.shuffle(labels)
        label = labels.pop()
        places = range(1, first[label] + 1)
        free = [place for place in places if Death(label, place, gently) not in used]
        death, again = Death(label, chance.choice(free or places), gently), Death("", chance.randint(1, second), gently)
        used.add(death)
        dies_again = len(moments) % SECOND == SECOND - 1
        moments.append(Moment(start + len(moments), (death, again) if dies_again else (death,)))
    return moments
