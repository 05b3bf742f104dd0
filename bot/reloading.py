"""What was read from files is read once more while everything goes on: SIGHUP.

What cannot be used is told with its mend, and what was there before is kept; nothing in here ends the process.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import TypeAlias

from bot.domain.errors import Problem

logger = logging.getLogger(__name__)

Reload: TypeAlias = Callable[[], tuple[Problem, ...]]
"""Reads something once more and uses it from now on; what is wrong with it, of which nothing is used."""


def reload_all(reloads: Mapping[str, Reload]) -> None:
    """Everything once more, each on its own; the names are for the log."""
    for name, reload in reloads.items():
        try:
            problems = reload()
        except Exception:
            logger.exception("%s could not be read again and is kept as it was", name)
            continue
        for problem in problems:
            logger.error("%s is kept as it was: %s", name, problem)
        if not problems:
            logger.info("%s was read again", name)
