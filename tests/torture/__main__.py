"""`python -m tests.torture`: many moments, or one, and a table of what became of them."""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.torture import cluster
from tests.torture.crossings import Death
from tests.torture.moments import Kind, Moment
from tests.torture.processes import Nursery
from tests.torture.report import describe, table
from tests.torture.series import MOMENTS, SEED, choose, rehearse, try_all
from tests.torture.trial import Trial


async def torture(options: argparse.Namespace) -> int:
    """Everything that was asked for; the exit code."""
    started = time.monotonic()
    with TemporaryDirectory(prefix="torture-") as folder:
        place = Path(folder)
        async with Nursery(place / "rehearsal.log") as nursery:
            rehearsals = await rehearse(nursery, only=options.kind)
        wrong = [one for one in rehearsals if one.verdict.complaints]
        say("".join(describe(one, options.seed) for one in wrong))
        rehearsals = [one for one in rehearsals if one not in wrong]
        if any(one.moment.kind in (Kind.KILL, options.kind) for one in wrong):
            return 1
        chosen = _chosen(options, rehearsals)  # of a kind that is wrong without a death, none
        trials = await try_all(chosen, folder=place, jobs=options.jobs, tried=_mark)
    say("\n")
    for trial in trials:
        if trial.verdict.complaints or options.verbose:
            say(describe(trial, options.seed))
    say(table(trials, seconds=time.monotonic() - started))
    return int(bool(wrong) or any(trial.verdict.complaints for trial in trials))


def _chosen(options: argparse.Namespace, rehearsals: list[Trial]) -> list[Moment]:
    if options.at:
        deaths = tuple(read_death(text, gently=options.gently) for text in options.at)
        return [Moment(-1, deaths, options.kind or Kind.KILL, options.early)] * options.times
    moments = choose(rehearsals, seed=options.seed, number=options.moments, only=options.kind)
    return [moments[options.moment]] * options.times if options.moment >= 0 else moments


def _mark(trial: Trial) -> None:
    say("x" if trial.verdict.complaints else ".")


def read_death(text: str, *, gently: bool) -> Death:
    """`LABEL#NUMBER`, as a moment that failed prints it."""
    label, _, number = text.rpartition("#")
    return Death("" if label == "any" else label, int(number), gently)


def read_kind(name: str) -> Kind:
    """By its name in lower case."""
    return Kind[name.upper().replace("-", "_")]


def say(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def read_options(words: Sequence[str] | None = None) -> argparse.Namespace:
    """Of the command line, or of these words."""
    parser = argparse.ArgumentParser(prog="python -m tests.torture", description=__doc__)
    parser.add_argument("--seed", type=int, default=SEED, help="what the moments are drawn by")
    parser.add_argument("--moments", type=int, help=f"how many: {MOMENTS}, with --cluster {cluster.MOMENTS}")
    parser.add_argument(
        "--kind", type=read_kind, help="only this kind: " + ", ".join(kind.name.lower() for kind in Kind)
    )
    parser.add_argument("--moment", type=int, default=-1, help="only this one")
    parser.add_argument("--at", action="append", help="die at LABEL#NUMBER; a second one is for the next life")
    parser.add_argument("--gently", action="store_true", help="with --at: SIGTERM instead of SIGKILL")
    parser.add_argument("--early", action="store_true", help="with --at: the journal comes back in the same life")
    parser.add_argument("--times", type=int, default=1, help="try the one moment so often")
    parser.add_argument("--jobs", type=int, default=2, help="so many at a time")
    parser.add_argument("--cluster", action="store_true", help="kill parts of a cluster instead")
    parser.add_argument("--verbose", action="store_true", help="tell of moments that went well, too")
    options = parser.parse_args(words)
    if options.moments is None:
        options.moments = cluster.MOMENTS if options.cluster else MOMENTS
    return options


def main() -> int:
    options = read_options()
    if options.cluster:
        return asyncio.run(cluster.torture_cluster(seed=options.seed, moments=options.moments, say=say))
    return asyncio.run(torture(options))


if __name__ == "__main__":
    sys.exit(main())
