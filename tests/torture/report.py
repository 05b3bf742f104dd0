"""What became of the moments, in text: one of them, or a table of all."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from tests.torture.trial import Trial

COLUMNS = ("moments", "unknown", "arrived", "unheard", "polite", "again", "seconds")


def describe(trial: Trial, seed: int) -> str:
    """A moment, what is wrong with it, how to try it alone, and all that the victims logged."""
    moment, verdict = trial.moment, trial.verdict
    deaths = " ".join(f"--at '{death}'" for death in moment.deaths)
    deaths += " --gently" if any(death.gently for death in moment.deaths) else ""
    lines = [
        f"moment {moment.number} of seed {seed}: {moment}; died {' then '.join(trial.deaths) or 'never'}",
        *(f"  - {complaint}" for complaint in verdict.complaints),
        f"  again: python -m tests.torture --seed {seed} --moment {moment.number}, or python -m tests.torture {deaths}",
        *(f"  | {line}" for line in trial.log.splitlines()),
    ]
    return "\n".join(lines) + "\n"


def table(trials: Sequence[Trial], *, seconds: float) -> str:
    """A line for each kind of crossing, and one for all."""
    kinds = sorted(trials, key=_kind)
    lines = [_row("died at", COLUMNS)]
    lines += [_row(kind, _figures(list(group))) for kind, group in groupby(kinds, key=_kind)]
    lines.append(_row("all", _figures(trials)))
    failed = sum(bool(trial.verdict.complaints) for trial in trials)
    lines.append(f"{len(trials)} moments, {failed} failed, {seconds:.1f} s")
    return "\n".join(lines) + "\n"


def _kind(trial: Trial) -> str:
    """Where the first life was killed; second deaths have no lines of their own, and all that were gentle share one."""
    if any(death.gently for death in trial.moment.deaths):
        return "(asked to stop, anywhere)"
    return (trial.deaths or ("never",))[0].partition("#")[0]


def _figures(trials: Sequence[Trial]) -> tuple[str, ...]:
    verdicts = [trial.verdict for trial in trials]
    counts = (
        len(trials),
        sum(verdict.unknown for verdict in verdicts),
        sum(verdict.arrived for verdict in verdicts),
        sum(verdict.unheard for verdict in verdicts),
        sum(verdict.polite for verdict in verdicts),
        sum(verdict.asked_again for verdict in verdicts),
    )
    return (*map(str, counts), f"{sum(trial.seconds for trial in trials) / max(len(trials), 1):.2f}")


def _row(name: str, cells: Iterable[str]) -> str:
    return f"{name:48}" + "".join(f"{cell:>10}" for cell in cells)
