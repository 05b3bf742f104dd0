"""The report: a line for each check, or JSON; and the exit code."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from dataclasses import asdict, replace

from bot.cli.doctor.checks import Check, Verdict


def to_json(checks: Collection[Check]) -> str:
    """A list of objects {check, verdict, said, mend}."""
    return json.dumps([asdict(check) for check in checks], ensure_ascii=False, indent=2)


def to_text(checks: Collection[Check]) -> str:
    """A line for each check, in columns, the mend behind what is wrong."""
    width = max((len(check.check) for check in checks), default=0)
    return "\n".join(_line(check, width) for check in checks)


def exit_code(checks: Collection[Check]) -> int:
    """0 without a problem, else 1."""
    return int(any(check.verdict is Verdict.PROBLEM for check in checks))


def masked(check: Check, mask: Callable[[str], str]) -> Check:
    """The check without secrets: servers quote what they were sent."""
    return replace(check, said=mask(check.said), mend=mask(check.mend))


def _line(check: Check, width: int) -> str:
    words = f"{check.said}. {check.mend}" if check.mend else check.said
    return f"{check.verdict:<8} {check.check:<{width}}  {' '.join(words.split())}"
