"""A day of a group of thousands, made: a few people talk much and most hardly ever, in bursts, more in the evening;
some ask the bot, now and then many at once, and a few do nothing else. The same seed is the same day.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from tests.bench.talk import FIRST_PERSON, NAMES, QUESTIONS, TOPICS

HOURS = (1, 0.5, 0.3, 0.2, 0.2, 0.3, 1, 2, 3, 3, 3, 4, 6, 4, 3, 3, 3, 4, 5, 6, 8, 9, 8, 4)  # how much is said in each
RUSH = 20.0  # seconds in which many ask
FLOOD = 60  # questions of somebody who does nothing else, in a row


@dataclass(frozen=True, slots=True)
class Said:
    """A line: `at` is in seconds after midnight; `asks` whether it is for the bot."""

    at: float
    user_id: int
    text: str
    asks: bool = False


@dataclass(frozen=True, slots=True)
class Crowd:
    """A day. `people` are numbers and names; `spammers` those of them who flood."""

    people: dict[int, str]
    spammers: frozenset[int]
    lines: tuple[Said, ...]


def make_crowd(
    seed: int, *, people: int = 2000, lines: int = 9000, hours: tuple[int, int] = (0, 24), flood: int = FLOOD
) -> Crowd:
    """A day with so many lines between these hours, and beside them floods of so many questions."""
    chance = random.Random(seed)
    numbers = [FIRST_PERSON + 7919 * place for place in range(people)]
    named = {number: f"{chance.choice(NAMES)}{place}" for place, number in enumerate(numbers)}
    spammers = frozenset(numbers[-3:])
    writing = Day(chance, numbers[:-3], hours)
    said = list(writing.talk(lines))
    for spammer in spammers:
        for _ in range(max(1, lines // 3000)):
            said += writing.flood(spammer, flood)
    return Crowd(named, spammers, tuple(sorted(said, key=lambda line: line.at)))


class Day:
    """Writes what is said in these hours by these people, the first of them most."""

    def __init__(self, chance: random.Random, people: list[int], hours: tuple[int, int]) -> None:
        self._chance, self._people = chance, people
        self._weights = [1 / (1 + place) for place in range(len(people))]
        self._hours = range(*hours)

    def talk(self, lines: int) -> Iterator[Said]:
        """Bursts of few people; in one of twelve, many ask at once."""
        chance, left = self._chance, lines
        while left > 0:
            size = min(left, chance.randint(4, 24))
            left -= size
            at = self._moment()
            if chance.random() < 1 / 12:
                for person in self._some(size):
                    yield Said(at + chance.uniform(0, RUSH), person, chance.choice(QUESTIONS), asks=True)
                continue
            topic, here = chance.choice(TOPICS), self._some(chance.randint(2, 6))
            for _ in range(size):
                at += chance.expovariate(1 / 6)
                asks = chance.random() < 1 / 40
                words = "，".join(map(chance.choice, topic))
                yield Said(at, chance.choice(here), chance.choice(QUESTIONS) if asks else words, asks=asks)

    def flood(self, spammer: int, size: int) -> Iterator[Said]:
        """One who asks again and again, a second or two apart."""
        at = self._moment()
        for number in range(size):
            at += self._chance.uniform(0.5, 2.5)
            yield Said(at, spammer, f"{self._chance.choice(QUESTIONS)} {number}", asks=True)

    def _moment(self) -> float:
        (hour,) = self._chance.choices(self._hours, [HOURS[hour] for hour in self._hours])
        return 3600 * (hour + self._chance.random() * 0.9)

    def _some(self, number: int) -> list[int]:
        return self._chance.choices(self._people, self._weights, k=number)
