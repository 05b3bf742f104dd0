"""The report: a line for each check, or JSON; and the exit code."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from dataclasses import asdict, replace
from unicodedata import east_asian_width

from bot.cli.doctor.checks import Check, Verdict
from bot.cli.doctor.chinese import CHECKS
from bot.domain.language import Language


def to_json(checks: Collection[Check]) -> str:
    """A list of objects {check, verdict, said, mend}."""
    return json.dumps([asdict(check) for check in checks], ensure_ascii=False, indent=2)


def to_text(checks: Collection[Check], tongue: Language = Language.ENGLISH) -> str:
    """A line for each check, in columns, the mend behind what is wrong."""
    rows = [_row(check, tongue) for check in checks]
    widths = [max(map(_width, column)) for column in zip(*rows, strict=True)][:-1]
    return "\n".join("  ".join([*map(_padded, row, widths), row[-1]]) for row in rows)


def exit_code(checks: Collection[Check]) -> int:
    """0 without a problem, else 1."""
    return int(any(check.verdict is Verdict.PROBLEM for check in checks))


def masked(check: Check, mask: Callable[[str], str]) -> Check:
    """The check without secrets: servers quote what they were sent."""
    return replace(check, said=check.said.each(mask), mend=check.mend.each(mask))


def _row(check: Check, tongue: Language) -> tuple[str, str, str]:
    """The verdict, the name of the check, and the words."""
    if tongue is Language.CHINESE:
        verdict, name = CHECKS[check.verdict], CHECKS.get(check.check, check.check)
        words = "。".join(filter(None, (check.said.zh, check.mend.zh)))
    else:
        verdict, name = str(check.verdict), check.check
        words = ". ".join(filter(None, (check.said, check.mend)))
    return verdict, name, " ".join(words.split())


def _width(text: str) -> int:
    """How many columns of a terminal it takes."""
    return sum(2 if east_asian_width(letter) in "WF" else 1 for letter in text)


def _padded(text: str, width: int) -> str:
    return text + " " * (width - _width(text))
