"""The memory that a page leaves behind: objects that hold each other, which the collector of a bot
looks for seldom, and free memory that the C library keeps for later. An operator looks for minutes,
the bot runs for weeks.
"""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Callable
from functools import cache


def let_go() -> None:
    """Give it back: a tenth of a millisecond after a page, a third of what the console takes."""
    gc.collect(0)
    trim()(0)


@cache
def trim() -> Callable[[int], object]:
    """The C library's own way to do so; nothing where it has none, as on macOS and Alpine."""
    try:
        found: Callable[[int], object] = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):
        return bool
    return found
