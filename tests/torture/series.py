"""Many moments: a rehearsal to know what there is to die at, then one moment after the other, some at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from tests.torture.moments import SERVERS, Crossed, Kind, Moment, draw
from tests.torture.processes import Nursery
from tests.torture.trial import Trial, try_moment

SEED = 1
MOMENTS = 400
RECOVERY = 12  # crossings of a start that has something to settle, at least
SPECIAL = Kind.KEEPING, Kind.DRAFTING, Kind.REMINDING, Kind.UNLIMITED, *SERVERS


async def rehearse(nursery: Nursery, *, only: Kind | None = None) -> list[Trial]:
    """Moments without death, for what lives cross; nothing must be wrong with them. Of one kind, no others."""
    kinds = [kind for kind in SPECIAL if only in (None, kind)]
    never = Moment(-1, ()), *(Moment(-1, (), kind) for kind in kinds)
    return [await try_moment(nursery, moment) for moment in never]


def choose(
    rehearsals: Sequence[Trial], *, seed: int = SEED, number: int = MOMENTS, only: Kind | None = None
) -> list[Moment]:
    """So many moments of what was crossed in the rehearsals, going round the kinds, or all of one; none of a kind
    that was not rehearsed.
    """
    crossed = {
        rehearsal.moment.kind: Crossed(
            rehearsal.crossed[0],
            sum(rehearsal.crossed[1].values()),
            max(RECOVERY, rehearsal.recovering[1] or 0),
        )
        for rehearsal in rehearsals
    }
    usual, without = crossed.pop(Kind.KILL), [kind for kind in SPECIAL if kind not in crossed]
    return draw(seed, number, usual, crossed, only=only, without=without)


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
