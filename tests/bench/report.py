"""Medians of the rounds, and how many times the base's they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any, TypeAlias

from tests.bench.trial import Figures

Results: TypeAlias = Mapping[str, Sequence[Figures]]
"""By subject, its figures round by round."""

LABELS = {
    "p10": ("added latency p10", "ms"),
    "p50": ("added latency p50", "ms"),
    "p95": ("added latency p95", "ms"),
    "p99": ("added latency p99", "ms"),
    "rate": ("throughput", "msg/s"),
    "cpu": ("processor", "ms/msg"),
    "idle": ("memory, idle", "MiB"),
    "peak": ("memory, peak", "MiB"),
    "start": ("start to connected", "s"),
}


BOUNDS = {"p50": 1.8, "rate": 0.42, "cpu": 2.7}
"""How many times the floor's the bot's figures may be; of `rate`, at least."""
LIMITS = {"idle": 84.0, "start": 1.0}
"""What the bot may take, in the units of LABELS."""


@dataclass(frozen=True, slots=True)
class Ratio:
    """How many times the base's a figure is: of one round each, so that both were measured in the same seconds."""

    median: float
    least: float
    most: float

    def __str__(self) -> str:
        return f"{self.median:.2f}x ({self.least:.2f}-{self.most:.2f})"


def ratio(results: Results, figure: str, subject: str, base: str) -> Ratio:
    """The ratio of one figure, over the rounds."""
    pairs = zip(results[subject], results[base], strict=True)
    ratios = [getattr(one, figure) / getattr(other, figure) for one, other in pairs]
    return Ratio(median(ratios), min(ratios), max(ratios))


def table(results: Results, pairs: Sequence[tuple[str, str]], labels: Mapping[str, tuple[str, str]] = LABELS) -> str:
    """The median of each figure of each subject, and for each pair (subject, base) the ratio with its extent."""
    head = ["", *results, *(f"{subject} / {base}" for subject, base in pairs)]
    rows = [head]
    for figure, (label, unit) in labels.items():
        values = [f"{median(getattr(one, figure) for one in rounds):.2f}" for rounds in results.values()]
        ratios = [str(ratio(results, figure, subject, base)) for subject, base in pairs]
        rows.append([f"{label}, {unit}", *values, *ratios])
    return lines(rows)


def bounds(results: Results, subject: str, base: str) -> str:
    """Each figure beside its bound, so that a slip is seen; it fails nothing."""
    rows = [["bounds", "measured", "agreed", ""]]
    for figure, bound in BOUNDS.items():
        measured = ratio(results, figure, subject, base).median
        holds = measured >= bound if figure == "rate" else measured <= bound
        sign = ">=" if figure == "rate" else "<="
        rows.append([LABELS[figure][0], f"{measured:.2f}x", f"{sign} {bound:g}x", word(holds)])
    for figure, limit in LIMITS.items():
        label, unit = LABELS[figure]
        measured = median(getattr(one, figure) for one in results[subject])
        holds = measured <= limit
        rows.append([label, f"{measured:.2f} {unit}", f"<= {limit:g} {unit}", word(holds)])
    return lines(rows)


def lines(rows: Sequence[Sequence[str]]) -> str:
    """Rows of words, in columns."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "".join(_line(row, widths) for row in rows)


def word(holds: bool) -> str:
    """Whether a bound is kept."""
    return "holds" if holds else "SLIPPED"


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    label, *cells = row
    rest = [cell.rjust(width) for cell, width in zip(cells, widths[1:], strict=True)]
    return "  ".join([label.ljust(widths[0]), *rest]) + "\n"


def as_json(results: Results, pairs: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """Everything that was measured, and the ratios."""
    return {
        "rounds": {name: [asdict(one) for one in rounds] for name, rounds in results.items()},
        "ratios": {
            f"{subject}/{base}": {name: asdict(ratio(results, name, subject, base)) for name in LABELS}
            for subject, base in pairs
        },
    }
