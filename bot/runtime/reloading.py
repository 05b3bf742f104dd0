"""Reloads files while the bot runs: `python -m bot reload`, or SIGHUP.

An unusable file is reported with its remedy, and the previous content stays in use. Nothing here
ends the process.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from frostagent.types.errors import Problem

logger = logging.getLogger(__name__)

Reload: TypeAlias = Callable[[], tuple[Problem, ...]]
"""Reloads something and returns its problems; if there are any, nothing of it is used."""


@dataclass(frozen=True, slots=True)
class ReloadResult:
    """A line per file; `whole` is false if any previous content stayed in use."""

    lines: tuple[str, ...] = ()
    whole: bool = True

    def and_then(self, level: int, line: str) -> ReloadResult:
        logger.log(level, line)
        return ReloadResult((*self.lines, line), self.whole and level < logging.WARNING)


def reload_all(reloads: Mapping[str, Reload]) -> ReloadResult:
    """Reload everything, each independently of the others; the keys are names for people."""
    told = ReloadResult()
    for name, reload in reloads.items():
        try:
            problems = reload()
        except Exception:
            line = f"{name} could not be read again and is kept as it was"
            logger.exception(line)
            told = ReloadResult((*told.lines, line), whole=False)
            continue
        for problem in problems:
            told = told.and_then(logging.ERROR, f"{name} is kept as it was: {problem}")
        if not problems:
            told = told.and_then(logging.INFO, f"{name} was read again")
    return told
