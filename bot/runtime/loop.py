"""The event loop that a command runs in: which one it is, its signals, and the way out of it."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import os
import signal
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import NoReturn

with contextlib.suppress(ImportError):  # as on Windows
    import uvloop

BAD_CONFIGURATION = 2  # exit code of what cannot run as it is configured


def on_signal(name: signal.Signals, do: Callable[[], object]) -> None:
    """Do something in the running loop whenever this signal comes. Does nothing in a thread that
    gets no signals.
    """
    loop, context = asyncio.get_running_loop(), contextvars.copy_context()

    def pass_on(_number: int, _frame: FrameType | None) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed
            # Else it would have the context of what the signal interrupts, as a run's.
            loop.call_soon_threadsafe(do, context=context)

    with contextlib.suppress(RuntimeError, ValueError):
        try:
            loop.add_signal_handler(name, do)
        except NotImplementedError:  # as on Windows
            signal.signal(name, pass_on)


def exit_process(code: int = 0) -> NoReturn:
    """End the process at once, when all is done but for a thread that hangs."""
    sys.stdout.flush()
    os._exit(code)


def leaf_exceptions(group: BaseExceptionGroup[BaseException]) -> Iterator[BaseException]:
    """The exceptions inside a group, however deep."""
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from leaf_exceptions(error)
        else:
            yield error


def fast_loop() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop where it is installed."""
    return uvloop.new_event_loop if "uvloop" in globals() else None
