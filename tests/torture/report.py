"""What became of the moments, in text: one of them, or a table of all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import groupby

from tests.torture.trial import Trial

LONG = 500  # characters of a complaint that is told once more at the end, where a log that was cut shows it
COLUMNS = ("moments", "unknown", "arrived", "excused", "polite", "again", "seconds")


def describe(trial: Trial, seed: int) -> str:
    """A moment, what is wrong with it, how to try it alone, and all that the victims logged."""
    moment, verdict = trial.moment, trial.verdict
    deaths = " ".join(f"--at '{death}'" for death in moment.deaths)
    deaths += " --gently" if any(death.gently for death in moment.deaths) else ""
    deaths += f" --kind {moment.kind.name.lower()}" + " --early" * moment.early
    lines = [
        f"moment {moment.number} of seed {seed}: {moment}; died {' then '.join(trial.deaths) or 'never'}",
        *(f"  - {complaint}" for complaint in verdict.complaints),
        f"  again: python -m tests.torture --seed {seed} --moment {moment.number}, or python -m tests.torture {deaths}",
        *(f"  | {line}" for line in trial.log.splitlines()),
    ]
    return "\n".join(lines) + "\n"


def table(trials: Sequence[Trial], *, seconds: float) -> str:
    """A line for each kind, and one for all; then what excused that questions had no reply."""
    kinds = sorted(trials, key=_kind)
    lines = [_row("", COLUMNS)]
    lines += [_row(kind, _figures(list(group))) for kind, group in groupby(kinds, key=_kind)]
    lines.append(_row("all", _figures(trials)))
    excused = sum((trial.verdict.excused for trial in trials), Counter[str]())
    lines += [f"excused {times} times: {reason}" for reason, times in excused.most_common()]
    lines.append(f"{_in_recovery(trials)} lives died before they took an event, at {_places(trials)} places in all")
    failed = sum(bool(trial.verdict.complaints) for trial in trials)
    lines += [f"failed: {trial.moment}: {what}"[:LONG] for trial in trials for what in trial.verdict.complaints]
    lines.append(f"{len(trials)} moments, {failed} failed, {seconds:.1f} s")
    return "\n".join(lines) + "\n"


def _kind(trial: Trial) -> str:
    return str(trial.moment.kind)


def _in_recovery(trials: Sequence[Trial]) -> int:
    """How many lives but the first ones died before they took an event."""
    return sum(recovering is None for trial in trials for recovering in trial.recovering[1:])


def _places(trials: Sequence[Trial]) -> int:
    """At how many different crossings lives were ended."""
    return len({death.partition("#")[0] for trial in trials for death in trial.deaths})


def _figures(trials: Sequence[Trial]) -> tuple[str, ...]:
    verdicts = [trial.verdict for trial in trials]
    counts = (
        len(trials),
        sum(verdict.unknown for verdict in verdicts),
        sum(verdict.arrived for verdict in verdicts),
        sum(verdict.excused.total() for verdict in verdicts),
        sum(verdict.polite for verdict in verdicts),
        sum(verdict.asked_again for verdict in verdicts),
    )
    return (*map(str, counts), f"{sum(trial.seconds for trial in trials) / max(len(trials), 1):.2f}")


def _row(name: str, cells: Iterable[str]) -> str:
    return f"{name:48}" + "".join(f"{cell:>10}" for cell in cells)
