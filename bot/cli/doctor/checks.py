"""The result of a check: how it went, in words, and what to do about it. Pure data."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from bot.cli.doctor.chinese import in_words, sentence
from bot.domain.errors import Problem
from bot.domain.language import Bilingual

NOTHING = Bilingual("", "")

LOG_IN = "Log the account in again at the OneBot server (scan the QR code in its WebUI)"
"""The mend of an account that is offline."""


class Verdict(StrEnum):
    """`OK`; `WARNING`, the bot can do without; `PROBLEM`, it cannot."""

    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the report: which check, how it went, in words, and the mend, empty where all is
    well.
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
    return [wrong(check, in_words(problem), problem.mend) for problem in problems]
