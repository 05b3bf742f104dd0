"""The exceptions that code of others may raise, and those that are not its own to raise.

A tool, a hook or a check can raise anything, also what is no `Exception`: SystemExit, a panic of a
library in Rust, a group of such. None of it may end more than its call. Whoever runs such code
catches BROKEN, and calls `isolate` first.
"""

from __future__ import annotations

import asyncio

BROKEN = BaseException


def isolate(error: BaseException) -> None:
    """Raise it again if it comes from outside: an interrupt, the end of a generator, a cancellation
    of this task.
    """
    if isinstance(error, KeyboardInterrupt | GeneratorExit):
        raise error
    if isinstance(error, asyncio.CancelledError) and is_cancelled():
        raise error


def is_cancelled() -> bool:
    """Whether somebody wants this task to end; False where there is none."""
    try:
        task = asyncio.current_task()
    except RuntimeError:
        return False
    return task is not None and task.cancelling() > 0
