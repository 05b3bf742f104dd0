"""The event loop that a command runs in: which one it is, its signals, and the way out of it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Callable, Iterator
from typing import NoReturn

with contextlib.suppress(ImportError):  # as on Windows
    import uvloop

BAD_CONFIGURATION = 2  # exit code of what cannot run as it is configured


def on_signal(name: signal.Signals, do: Callable[[], object]) -> None:
    """Do something whenever this signal comes, where the running loop takes signal handlers at
    all.
    """
    with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
        asyncio.get_running_loop().add_signal_handler(name, do)


def leave(code: int = 0) -> NoReturn:
    """End the process at once, when all is done but for a thread that hangs."""
    sys.stdout.flush()
    os._exit(code)


def leaves(group: BaseExceptionGroup[BaseException]) -> Iterator[BaseException]:
    """The exceptions inside a group, however deep."""
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from leaves(error)
        else:
            yield error


def fast_loop() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop where it is installed."""
    return uvloop.new_event_loop if "uvloop" in globals() else None
