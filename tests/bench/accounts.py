"""Ten thousand accounts over the real division into partitions and the real sharing out of those, on paper: how evenly,
what moves when a worker is lost or comes, and how deep queues get meanwhile. `python -m tests.bench.accounts` shows it.
"""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass
from random import Random

from adapters.broker.partitions import partition_of
from bot.cluster.partition_manager import moves

ACCOUNTS, GROUPS = 10_000, 100_000
BUSY_RATE = 50  # messages a second in a busy group
HEARD, ASKED = 1.0, 2.1  # ms of a core: a message that comes alone; a question and its answer, over gateway and worker
ASKS = 0.01  # of a busy group's messages: it is answered one after the other, and a model takes two seconds for each
WORKED = int(1000 / (HEARD + ASKS * (ASKED - HEARD)))  # messages a second that a worker does on its core
TAKEN_OVER = 5  # seconds until a lost worker's partitions have somebody
NOBODY = ""


@dataclass
class Workers:
    """Who has which partition; each looks at the roster in turn, as a `PartitionManager` does."""

    had: dict[int, str]
    names: list[str]
    dice: Random

    def settle(self) -> int:
        """Let them look until nothing moves; how many partitions changed hands."""
        before, looks = dict(self.had), 0
        while self._look():
            looks += 1
            assert looks < 100, "it never settles"
        return sum(self.had[number] != who for number, who in before.items())

    def _look(self) -> bool:
        changed = False
        for name in self.dice.sample(self.names, len(self.names)):
            here = [number for number, who in self.had.items() if who == name]
            free = [number for number, who in self.had.items() if who not in self.names]
            others = Counter(who for who in self.had.values() if who in self.names and who != name)
            me, number = (len(here), name), len(self.names)
            wanted = moves(partitions=len(self.had), workers=number, me=me, others=others, free=free)
            self.had |= dict.fromkeys(wanted.take, name) | dict.fromkeys(here[: wanted.give], NOBODY)
            changed |= bool(wanted.take or wanted.give)
        return changed


@dataclass(frozen=True)
class Evening:
    """How it went. `fullest` is the partition with the most accounts, as a share of the mean; `busiest` the worker with
    the most messages a second. `lost` and `came` are the partitions that changed hands then; `deepest` is the most that
    ever waited in one partition, `late` the seconds after the loss until nothing waited; None where some is too busy.
    """

    fullest: float
    busiest: int
    lost: int
    came: int
    deepest: int
    late: int | None


def evening(*, seed: int, partitions: int, workers: int, busy: int, clusters: int = 1) -> Evening:
    """So many busy groups in one of so many clusters; a worker is lost in the midst of it, and replaced later."""
    dice, people, groups = Random(seed), ACCOUNTS // clusters, GROUPS // clusters
    accounts = dice.sample(range(10**9, 4 * 10**9), people)
    spread = Counter(partition_of(account, partitions) for account in accounts)
    crowds = Counter(partition_of(accounts[group % people], partitions) for group in dice.sample(range(groups), busy))
    load = {number: BUSY_RATE * crowds[number] for number in range(partitions)}
    town = Workers(dict.fromkeys(range(partitions), NOBODY), [f"worker {number}" for number in range(workers)], dice)
    town.settle()
    busiest = max(sum(load[number] for number, who in town.had.items() if who == name) for name in town.names)
    victim = dice.choice(town.names)
    waiting = dict.fromkeys(range(partitions), 0)
    deepest, lost = 0, 0
    late: int | None = None
    town.names.remove(victim)
    for second in range(600):
        if second == TAKEN_OVER:
            lost = town.settle()
        for name in town.names:
            _work(waiting, load, [number for number, who in town.had.items() if who == name])
        for number in (number for number, who in town.had.items() if who == victim):
            waiting[number] += load[number]
        deepest = max(deepest, *waiting.values())
        if second >= TAKEN_OVER and not any(waiting.values()):
            late = second
            break
    town.names.append("worker new")
    return Evening(max(spread.values()) * partitions / people, busiest, lost, town.settle(), deepest, late)


def _work(waiting: dict[int, int], load: dict[int, int], here: list[int]) -> None:
    """A second of a worker: the longest queue first."""
    left = WORKED
    for number in here:
        waiting[number] += load[number]
    for number in sorted(here, key=lambda one: -waiting[one]):
        done = min(left, waiting[number])
        waiting[number] -= done
        left -= done


if __name__ == "__main__":
    for apart, crowd in ((1, 1000), (1, 500), (1, 250), (2, 500), (3, 334)):
        for many in (65, 64, 32):
            for dealt in range(1, 11):
                told = evening(seed=dealt, partitions=64, workers=many, busy=crowd, clusters=apart)
                sys.stdout.write(f"1 of {apart} clusters, {BUSY_RATE * crowd} a second, {many} workers: {told}\n")
