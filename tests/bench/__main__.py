"""`python -m tests.bench`: the bot, the bot without its journal, and the floor; or two revisions of the bot; or one
process beside a cluster; or what limits add; or what a console does.

Rounds are interleaved (A B C A B C), so that what else the machine does falls on all alike.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import uvloop

from tests.bench import cluster, limits, looking, micro, report
from tests.bench.subject import BOT, FLOOR, ROOT, UNJOURNALED, Subject, serving_model, sharing_cores
from tests.bench.trial import Figures, Load, measure

RESULTS = ROOT / "bench-results"


async def measure_all(
    subjects: Sequence[Subject], *, rounds: int, load: Load, bot_cpu: int | None = None
) -> dict[str, list[Figures]]:
    """Every subject in every round."""
    results: dict[str, list[Figures]] = {subject.name: [] for subject in subjects}
    with sharing_cores(bot_cpu) as cores:
        async with serving_model() as model:
            for _ in range(rounds):
                for subject in subjects:
                    results[subject.name].append(await measure(subject, load, model=model, cores=cores))
    return results


@contextmanager
def checked_out(revision: str, *, repository: Path = ROOT) -> Iterator[tuple[str, Path]]:
    """The commit a revision means, and a folder with its files while the block runs."""
    git = partial(run_git, repository)
    commit = git("rev-parse", "--short", "--verify", f"{revision}^{{commit}}")
    with TemporaryDirectory(prefix="bench-base-") as folder:
        tree = Path(folder) / "tree"
        git("worktree", "add", "--quiet", "--detach", str(tree), commit)
        try:
            yield commit, tree
        finally:
            git("worktree", "remove", "--force", str(tree))


def run_git(repository: Path, *words: str) -> str:
    """What git says; what it complains of goes to standard error, and ends the program."""
    done = subprocess.run(["git", *words], cwd=repository, stdout=subprocess.PIPE, text=True, check=False, timeout=60)
    if done.returncode:
        sys.exit(f"bench: git {words[0]} did not work")
    return done.stdout.strip()


def bench(options: argparse.Namespace, load: Load) -> dict[str, Any]:
    """The bot beside the floor, and what its journal costs."""
    parts = uvloop.run(micro.measure_parts())
    say(micro.describe(parts) + "\n")
    subjects = (BOT, UNJOURNALED, FLOOR)
    results = uvloop.run(measure_all(subjects, rounds=options.rounds, load=load, bot_cpu=options.bot_cpu))
    pairs = ((BOT.name, FLOOR.name), (UNJOURNALED.name, FLOOR.name), (BOT.name, UNJOURNALED.name))
    say(report.table(results, pairs) + "\n" + report.bounds(results, BOT.name, FLOOR.name))
    costs = [{"part": cost.part, "unit": cost.unit, "us": cost.micros} for cost in parts]
    return {"parts": costs, **report.as_json(results, pairs)}


def compare(options: argparse.Namespace, load: Load) -> dict[str, Any]:
    """The bot as it lies here beside that of another revision, both asked by the driver as it lies here."""
    with checked_out(options.compare) as (commit, tree):
        base = Subject(f"base {commit}", BOT.words, tree)
        subjects = (base, Subject("here", BOT.words))
        results = uvloop.run(measure_all(subjects, rounds=options.rounds, load=load, bot_cpu=options.bot_cpu))
    pairs = (("here", base.name),)
    say(report.table(results, pairs))
    return {"base": commit, **report.as_json(results, pairs)}


def bench_cluster(options: argparse.Namespace, load: Load) -> dict[str, Any]:
    """One process beside a gateway and a worker, and what several workers do."""
    if reason := cluster.why_not():
        sys.exit(f"bench: {reason}")
    measuring = cluster.measure_cluster(
        rounds=options.rounds, load=load, kills=options.kills, backlog=options.backlog, bot_cpu=options.bot_cpu
    )
    outcome = uvloop.run(measuring)
    say(cluster.told(outcome))
    return cluster.as_json(outcome)


def bench_console(options: argparse.Namespace, load: Load) -> dict[str, Any]:
    """The bot with a console that is absent, closed and open; what streams hold, and how soon a page hears of much."""
    results = uvloop.run(looking.messages(options.rounds, load, options.bot_cpu))
    say(report.table(results, looking.PAIRS, looking.LABELS) + "\n")
    say(uvloop.run(looking.streams()) + uvloop.run(looking.events()))
    return report.as_json(results, looking.PAIRS)


def bench_limits(options: argparse.Namespace) -> dict[str, Any]:
    """The bot without limits, with rates, with limits of a day; where a revision is named, that one without any too."""
    with checked_out(options.compare) if options.compare else nullcontext(("", None)) as (_, tree):
        added = uvloop.run(limits.measure_limits(options.slices, options.bot_cpu, base=tree))
    say(limits.told(added))
    return limits.as_json(added)


def say(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def write(figures: dict[str, Any]) -> Path:
    """Keep the figures; the file they are in."""
    RESULTS.mkdir(exist_ok=True)
    file = RESULTS / time.strftime("%Y%m%d-%H%M%S.json")
    file.write_text(json.dumps({"load_average": os.getloadavg(), **figures}, indent=1) + "\n", "utf-8")
    return file


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="how often everything is measured")
    parser.add_argument("--messages", type=int, default=Load().messages, help="asked one after the other")
    parser.add_argument("--groups", type=int, default=Load().groups, help="that ask at the same time")
    parser.add_argument("--seconds", type=float, default=Load().seconds, help="that they do")
    parser.add_argument("--bot-cpu", type=int, help="the core of the bot; the others are ours (the first, without)")
    parser.add_argument("--compare", metavar="REVISION", help="the bot of this revision instead of the floor")
    parser.add_argument("--cluster", action="store_true", help="one process beside a gateway and workers over RabbitMQ")
    parser.add_argument("--limits", action="store_true", help="what limits add to a message, side by side")
    parser.add_argument("--console", action="store_true", help="what a console adds, and what it holds while open")
    parser.add_argument("--slices", type=int, default=200, help="of each bot, with --limits")
    parser.add_argument("--kills", type=int, default=3, help="of a worker, with --cluster")
    parser.add_argument("--backlog", type=int, default=20_000, help="events that wait for workers, with --cluster")
    options = parser.parse_args()
    load = Load(messages=options.messages, groups=options.groups, seconds=options.seconds)
    say(f"load average at the start {os.getloadavg()[0]:.1f}\n")
    if options.cluster:
        figures = bench_cluster(options, load)
    elif options.console:
        figures = bench_console(options, load)
    elif options.limits:
        figures = bench_limits(options)
    else:
        figures = compare(options, load) if options.compare else bench(options, load)
    say(f"\nwritten to {write(figures).relative_to(ROOT)}\n")


if __name__ == "__main__":
    main()
