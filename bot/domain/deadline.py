"""A time limit for what is cleaned up while its task is being cancelled.

Python 3.11.2, Debian 12's own, takes the older cancellation for its time-out's: `asyncio.timeout`
then raises CancelledError where TimeoutError was meant, and the rest of the cleaning up is left
undone (mended in 3.11.3).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


@asynccontextmanager
async def last_moments(seconds: float) -> AsyncIterator[None]:
    """As `asyncio.timeout`, also in a task that is being cancelled. Raises TimeoutError."""
    task = asyncio.current_task()
    if task is None:
        raise RuntimeError("only a task can be given so long")
    cancelled = task.cancelling()
    is_over = False

    def end() -> None:
        nonlocal is_over
        is_over = True
        task.cancel()

    alarm = asyncio.get_running_loop().call_later(seconds, end)
    try:
        yield
    except asyncio.CancelledError as error:
        if is_over and task.uncancel() <= cancelled:
            raise TimeoutError from error
        raise
    finally:
        alarm.cancel()
