"""Many moments: a rehearsal to know what there is to die at, then one moment after the other, some at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from pathlib import Path

from tests.torture.moments import Kind, Moment, draw
from tests.torture.processes import Nursery
from tests.torture.trial import Trial, try_moment

SEED = 1
MOMENTS = 400
RECOVERY = 12  # crossings of a start that has something to settle, at least
NEVER = Moment(-1, ())


async def rehearse(nursery: Nursery) -> Trial:
    """A moment without death, for what lives cross; nothing must be wrong with it."""
    return await try_moment(nursery, NEVER)


def choose(rehearsal: Trial, *, seed: int = SEED, number: int = MOMENTS, only: Kind | None = None) -> list[Moment]:
    """So many moments of what was crossed in a rehearsal, going round the kinds, or all of one."""
    first, second = rehearsal.crossed[0], sum(rehearsal.crossed[1].values())
    recovery = max(RECOVERY, rehearsal.recovering[1] or 0)
    return draw(seed, number, first, second, recovery, only=only)


async def try_all(moments: Iterable[Moment], *, folder: Path, jobs: int, tried: Callable[[Trial], None]) -> list[Trial]:
    """Try all of these, so many at a time, in order; `tried` is called with each as it ends."""
    waiting = list(reversed(list(moments)))
    trials: list[Trial] = []

    async def work(name: int) -> None:
        async with Nursery(folder / f"victims-{name}.log") as nursery:
            while waiting:
                trial = await try_moment(nursery, waiting.pop())
                trials.append(trial)
                tried(trial)

    async with asyncio.TaskGroup() as group:
        for name in range(jobs):
            group.create_task(work(name))
    return sorted(trials, key=lambda trial: trial.moment.number)
