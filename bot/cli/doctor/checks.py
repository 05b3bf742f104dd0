"""The result of a check, and the report of all: lines or JSON, and the exit code. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from unicodedata import east_asian_width

from bot.cli.doctor.chinese import CHECKS, describe_problem, sentence
from bot.domain.errors import Problem
from bot.domain.language import Bilingual, Language

NOTHING = Bilingual("", "")

LOG_IN = "Log the account in again at the OneBot server (scan the QR code in its WebUI)"
"""How to fix an account that is offline."""


class Verdict(StrEnum):
    """`OK`; `WARNING`, the bot can do without; `PROBLEM`, it cannot."""

    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the report: which check, how it went, in words, and how to fix it, empty if all
    is well.
    """

    check: str
    verdict: Verdict
    said: Bilingual
    mend: Bilingual = NOTHING


def _bilingual(text: str) -> Bilingual:
    return text if isinstance(text, Bilingual) else sentence(text)


def well(check: str, said: str) -> Check:
    """All is well."""
    return Check(check, Verdict.OK, _bilingual(said))


def warn(check: str, said: str, mend: str) -> Check:
    """The bot can do without, but not as well."""
    return Check(check, Verdict.WARNING, _bilingual(said), _bilingual(mend))


def wrong(check: str, said: str, mend: str) -> Check:
    """The bot cannot work like this."""
    return Check(check, Verdict.PROBLEM, _bilingual(said), _bilingual(mend))


def wrong_settings(check: str, problems: Iterable[Problem]) -> list[Check]:
    """The problems of a ConfigError, a line each, under the names that were typed."""
    return [wrong(check, describe_problem(problem), problem.mend) for problem in problems]


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
