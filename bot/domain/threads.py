"""Plain functions beside the loop: each in a thread of its own, so many at once.

Not the loop's own executor: others need that (the resolver of names does), and a function that
never returns would keep its place there, and hold up the end of the process.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from bot.domain.errors import ToolUnavailable
from bot.domain.faults import BROKEN

MAX_THREADS = 64  # more than that many calls at once are calls that hang
FULL = "too many calls are under way that have not come back. Do without it."


class Threads:
    """At most so many threads at once; one whose caller has gone still counts until its function
    returns.
    """

    def __init__(self, most: int = MAX_THREADS) -> None:
        self._places = threading.BoundedSemaphore(most)

    async def run(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """What the function returns, or raises. Raises ToolUnavailable where all threads are
        busy.
        """
        if not self._places.acquire(blocking=False):
            raise ToolUnavailable(FULL)
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        context = contextvars.copy_context()

        def work() -> None:
            result: object = None
            error: BaseException | None = None
            try:
                result = context.run(function, *args, **kwargs)
            except StopIteration as end:  # no future takes one
                error = RuntimeError(f"the function raised {end!r}")
            except BROKEN as raised:
                error = raised
            finally:
                self._places.release()
            with suppress(RuntimeError):  # the loop is closed, nobody waits any more
                loop.call_soon_threadsafe(settle, result, error)

        def settle(result: object, error: BaseException | None) -> None:
            if future.done():
                return  # the call was given up
            if error is None:
                future.set_result(result)
            else:
                future.set_exception(error)

        try:
            threading.Thread(target=work, daemon=True).start()
        except RuntimeError as error:  # the system has no more of them
            self._places.release()
            raise ToolUnavailable(FULL) from error
        return await future


THREADS = Threads()
