"""Other people's coroutines, which have to let go when they are cancelled.

`except:` in a loop is soon written, and then nothing ends it: neither a deadline nor a stop, and
the questions behind it wait for ever. So such a coroutine is driven by hand, and left where it
stands.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Coroutine, Generator
from contextvars import ContextVar
from functools import partial
from typing import Any, Generic, TypeVar

from frostagent.cancellation import BROKEN
from frostagent.types.hooks import MaybeAwaitable

logger = logging.getLogger(__name__)

PATIENCE = 0.4  # seconds to clean up, and once as many for what goes on inside

T = TypeVar("T")


async def await_settled(answer: MaybeAwaitable[T], *, name: str) -> T:
    """What code of others has answered; where that is to be awaited, it has to let go. Raises what
    it raises.
    """
    return (
        await ForcedCancel(_awaited(answer), name=name) if inspect.isawaitable(answer) else answer
    )


async def _awaited(answer: Awaitable[T]) -> T:
    return await answer


class ForcedCancel(Generic[T]):
    """Awaited, it is as if the body was awaited in its place, in the same task. Cancelled, the body
    has `patience` seconds to end; then it is left undone, and whoever waits goes on.
    """

    def __init__(
        self, body: Coroutine[Any, Any, T], *, name: str, patience: float = PATIENCE
    ) -> None:
        self._body = body
        self._name = name
        self._patience = patience
        self.inside = 0  # others that go on in this one: of its subagent's calls
        self._alarm: asyncio.TimerHandle | None = None
        self._cancelled = 0  # how often its task was, when it began
        self._is_over = False

    def __await__(self) -> Generator[Any, Any, T]:
        """The body's result. Raises what it raises."""
        around, task = _around.get(), asyncio.current_task()
        self._cancelled = task.cancelling() if task else 0
        _around.set(self)
        if around is not None:
            around.inside += 1
        try:
            return (yield from self._drive())
        finally:
            _around.set(around)
            if around is not None:
                around.inside -= 1
            if self._alarm is not None:
                self._alarm.cancel()

    def _drive(self) -> Generator[Any, Any, T]:
        step: Callable[[], Any] = partial(self._body.send, None)
        while True:
            try:
                awaited = step()
            except StopIteration as end:
                result: T = end.value
                return result
            step = yield from self._next(awaited)

    def _next(self, awaited: Any) -> Generator[Any, Any, Callable[[], Any]]:
        """The body's next step, once what it awaits is over. To wait for that by a future of our
        own lets us go where that is a task which catches its cancellation.
        """
        is_future = _can_be_awaited(awaited)
        while True:
            try:
                if is_future:
                    yield from _bell(awaited)
                else:
                    yield awaited
            except GeneratorExit:
                self._body.close()
                raise
            except BROKEN as error:  # what it waited for has raised it, or somebody cancels
                if isinstance(error, asyncio.CancelledError):
                    self._hurry()
                    if is_future and awaited.cancel():
                        continue  # the body hears of it from what it awaits, as in any other task
                return partial(self._body.throw, error)
            return partial(self._body.send, None)

    def _hurry(self) -> None:
        """Perhaps it is cancelled: its own time limits, and tasks that it waits for, look the same
        at first. Raises CancelledError where its time is over.
        """
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("only what a task awaits can be cancelled")
        if self._is_over:
            self._leave()
            task.uncancel()  # that was the alarm's
            raise asyncio.CancelledError
        if self._alarm is None and task.cancelling() > self._cancelled:
            self._wait(task, again=True)

    def _wait(self, task: asyncio.Task[Any], *, again: bool) -> None:
        def ring() -> None:
            self._alarm = None
            if task.cancelling() <= self._cancelled:
                return  # it has seen to that itself, as `asyncio.timeout` does
            if again and self.inside:
                self._wait(task, again=False)
                return
            self._is_over = True
            task.cancel()

        self._alarm = asyncio.get_running_loop().call_later(self._patience, ring)

    def _leave(self) -> None:
        logger.error(
            "%s does not end when it is cancelled, and is left as it stands: "
            "its code catches CancelledError, perhaps with a bare except",
            self._name,
        )
        try:
            self._body.close()
        except BROKEN as error:  # not even now
            logger.debug("%s does not end at all: %r", self._name, error)


def _can_be_awaited(awaited: Any) -> bool:
    """Whether it is a future that a task may await here; asyncio tells of all else itself."""
    if not asyncio.isfuture(awaited) or awaited is asyncio.current_task():
        return False
    return awaited.get_loop() is asyncio.get_running_loop()


def _bell(awaited: asyncio.Future[Any]) -> Generator[Any, Any, None]:
    """Wait until it is over, whatever comes of it."""
    rung: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def ring(_: asyncio.Future[Any]) -> None:
        if not rung.done():
            rung.set_result(None)

    awaited.add_done_callback(ring)
    yield from rung


_around: ContextVar[ForcedCancel[Any] | None] = ContextVar("around", default=None)
