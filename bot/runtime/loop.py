"""The event loop of a command, its signals, and its exit."""

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

with contextlib.suppress(ImportError):  # not on Windows
    import uvloop

BAD_CONFIGURATION = 2  # exit code for an invalid configuration


def on_signal(name: signal.Signals, do: Callable[[], object]) -> None:
    """Call `do` in the running loop on each signal. No effect in a thread without signals."""
    loop, context = asyncio.get_running_loop(), contextvars.copy_context()

    def pass_on(_number: int, _frame: FrameType | None) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed
            # Otherwise it would run in the context that the signal interrupts, such as a run's.
            loop.call_soon_threadsafe(do, context=context)

    with contextlib.suppress(RuntimeError, ValueError):
        try:
            loop.add_signal_handler(name, do)
        except NotImplementedError:  # on Windows
            signal.signal(name, pass_on)


def exit_process(code: int = 0) -> NoReturn:
    """End the process at once, although a thread hangs."""
    sys.stdout.flush()
    os._exit(code)


def leaf_exceptions(group: BaseExceptionGroup[BaseException]) -> Iterator[BaseException]:
    """Yield the exceptions of nested groups."""
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from leaf_exceptions(error)
        else:
            yield error


def fast_loop() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Return uvloop's factory if it is installed."""
    return uvloop.new_event_loop if "uvloop" in globals() else None
