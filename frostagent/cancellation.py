"""Tasks: background work, time to clean up after a cancellation, errors that end a task."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager

BROKEN = BaseException


def isolate(error: BaseException) -> None:
    """Raise an interrupt, a generator's end or this task's cancellation again."""
    if isinstance(error, KeyboardInterrupt | GeneratorExit):
        raise error
    if isinstance(error, asyncio.CancelledError) and is_cancelled():
        raise error


def is_cancelled() -> bool:
    """Whether this task has been asked to cancel. False outside of tasks."""
    try:
        task = asyncio.current_task()
    except RuntimeError:
        return False
    return task is not None and task.cancelling() > 0


@asynccontextmanager
async def last_moments(seconds: float) -> AsyncIterator[None]:
    """As `asyncio.timeout`, but also in a task being cancelled. Raises TimeoutError."""
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


@asynccontextmanager
async def background(*loops: Coroutine[None, None, None]) -> AsyncIterator[None]:
    """Run coroutines while the block runs, and cancel them at its end."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(loop) for loop in loops]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
