"""Plain functions beside the loop: each in a thread of its own, so many at once; what they tell.

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

from frostagent.cancellation import BROKEN
from frostagent.types.errors import ToolUnavailable
from frostagent.types.results import ToolResult

MAX_THREADS = 64  # more than that many calls at once are calls that hang
FULL = "too many calls are under way that have not come back. Do without it."


class Threads:
    """At most so many threads at once; one whose caller has gone still counts until its function
    returns.
    """

    def __init__(self, most: int = MAX_THREADS) -> None:
        self._places = threading.BoundedSemaphore(most)

    async def run(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Return what the function returns, or raise what it does.

        Raises ToolUnavailable where all threads are busy.
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


class Progress:
    """Where a call's partial results go while it runs. Once closed nothing is told any more.

    A tool in a thread may use it too: what it tells is handed to the loop this was made in.
    """

    __slots__ = ("_loop", "_tell", "_thread")

    def __init__(self, tell: Callable[[ToolResult], None]) -> None:
        self._tell: Callable[[ToolResult], None] | None = tell
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()

    def __call__(self, partial_result: ToolResult, /) -> None:
        if threading.get_ident() == self._thread:
            self._pass_on(partial_result)
        elif self._tell is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._pass_on, partial_result)

    def _pass_on(self, partial_result: ToolResult) -> None:
        if self._tell is not None:
            self._tell(partial_result)

    def close(self) -> None:
        """The call is over: what comes late is ignored."""
        self._tell = None
