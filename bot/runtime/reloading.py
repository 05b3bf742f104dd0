"""Files are read once more while everything goes on: `python -m bot reload`, or SIGHUP.

What cannot be used is told with its mend, and what was there before is kept; nothing in here ends
the process.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from frostagent.types.errors import Problem

logger = logging.getLogger(__name__)

Reload: TypeAlias = Callable[[], tuple[Problem, ...]]
"""Reads something once more and uses it from now on; what is wrong with it, of which nothing is
used.
"""


@dataclass(frozen=True, slots=True)
class ReloadResult:
    """The outcome, a line for each; `whole` where nothing had to be kept as it was."""

    lines: tuple[str, ...] = ()
    whole: bool = True

    def and_then(self, level: int, line: str) -> ReloadResult:
        """With one more line, which is logged."""
        logger.log(level, line)
        return ReloadResult((*self.lines, line), self.whole and level < logging.WARNING)


def reload_all(reloads: Mapping[str, Reload]) -> ReloadResult:
    """Everything once more, each on its own; the names are for people."""
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
