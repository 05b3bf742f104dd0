"""Runs users' code: tool bodies, availability, hooks, checks and approvers. All must end when
cancelled.

Plain functions run in threads of their own, at most `MAX_THREADS`, not in the loop's executor:
others need that one (such as name resolution), and a function that never returns would occupy it
and delay the exit of the process.

Coroutines are driven manually (`ForcedCancel`): an `except:` in a loop could ignore deadlines and
stops forever, and block all later questions. Such a coroutine is abandoned.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import logging
import threading
from collections.abc import Awaitable, Callable, Coroutine, Generator
from contextlib import suppress
from contextvars import ContextVar
from functools import partial
from typing import Any, Generic, TypeVar

from frostagent.cancellation import BROKEN, isolate
from frostagent.engine.call_state import CallStage, CallState
from frostagent.text.masking import one_line
from frostagent.types.errors import (
    InvalidArguments,
    ToolDenied,
    ToolError,
    ToolFailed,
    ToolUnavailable,
)
from frostagent.types.hooks import MaybeAwaitable
from frostagent.types.results import ToolResult
from frostagent.types.tools import Tool, ToolContext
from frostagent.words import words_in_force

logger = logging.getLogger(__name__)

T = TypeVar("T")
Event = TypeVar("Event")
Answer = TypeVar("Answer")


async def run_body(tool: Tool, context: ToolContext, arguments: dict[str, Any]) -> object:
    """Run the body with checked arguments: a coroutine on the loop, a plain `def` in a thread. A
    coroutine that ignores cancellation is abandoned.
    """
    if tool.function is None:
        raise ToolUnavailable(f"{tool.name} has no body, so it cannot run. Do without it.")
    given = (context,) if tool.wants_context else ()
    if inspect.iscoroutinefunction(tool.function):
        result = tool.function(*given, **arguments)
    else:
        result = await THREADS.run(tool.function, *given, **arguments)
    return await await_settled(result, name=f"tool {tool.name}")


def unavailable_reason(tool: Tool) -> str:
    """Why the tool says it cannot be used now; empty if it can. Never raises."""
    if tool.function is None:
        return words_in_force().no_body
    if tool.available is None:
        return ""
    try:
        return read_availability(tool.available())
    except BROKEN as broken:
        isolate(broken)
        logger.exception("tool %s cannot say whether it is available", tool.name)
        return words_in_force().cannot_say.format(error=type(broken).__name__)


def read_availability(answer: object) -> str:
    """The reason in what `available` returned: a bool, a text, or both."""
    match answer:
        case (bool(is_there), str(reason)):
            return "" if is_there else reason or words_in_force().not_available
        case True | None:
            return ""
        case False:
            return words_in_force().not_available
        case str():
            return answer
        case _:
            return str(answer)


LONGEST = 300  # characters of a tool's error text

Mask = Callable[[str], str]


def record_failure(state: CallState, error: BaseException, *, mask: Mask = str) -> None:
    """Make an exception the call's result. Raises it again if it concerns the task itself.

    The text of a ToolError, or of a ValueError from the tool's code, goes to the model: tools
    report errors that way. Anything else is a bug, and its text is only logged. `mask` removes
    secrets.
    """
    isolate(error)
    told = _told(state, error, mask)
    if (
        state.ran
        and type(told) is ToolFailed
        and state.tool is not None
        and (reason := unavailable_reason(state.tool))
    ):
        told = ToolUnavailable(f"{state.tool.name} cannot be used now: it {reason}. Do without it.")
    state.refuse(told, error)


def error_text(error: ValueError, mask: Mask = str) -> str:
    """The tool's error text on one line, without secrets."""
    return mask(one_line(mask(str(error)), LONGEST))


def _told(state: CallState, error: BaseException, mask: Mask) -> ToolError:
    match error:
        case ToolError():
            return error
        case asyncio.CancelledError():
            return ToolFailed(f"{state.stage} gave up on itself. Try something else.")
        case ValueError() if state.stage is CallStage.PREPARING and (
            words := error_text(error, mask)
        ):
            return InvalidArguments(words, fields=(words,))
        case ValueError() if state.stage is CallStage.RUNNING and (
            words := error_text(error, mask)
        ):
            logger.warning(
                "tool %s refused in run %s", state.call.name, state.context.run_id, exc_info=error
            )
            return ToolFailed(words)
    logger.error(
        "tool %s: %s broke in run %s",
        state.call.name,
        state.stage,
        state.context.run_id,
        exc_info=error,
    )
    if state.stage is CallStage.ASKING:
        return ToolDenied(
            f"nobody could be asked to allow it ({type(error).__name__}). Do without it."
        )
    text = f"{state.stage} broke ({type(error).__name__})."
    return ToolFailed(f"{text} Do not repeat the call; say that it did not work.")


# --- plain functions, in threads ------------------------------------------------------------------

MAX_THREADS = 64  # more calls at once means that calls hang
FULL = "too many calls are under way that have not come back. Do without it."


class Threads:
    """Limits concurrent threads, including those whose caller is gone."""

    def __init__(self, most: int = MAX_THREADS) -> None:
        self._places = threading.BoundedSemaphore(most)

    async def run(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Run the function in a thread. Raises ToolUnavailable if all threads are busy."""
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
            except StopIteration as end:  # a future cannot hold one
                error = RuntimeError(f"the function raised {end!r}")
            except BROKEN as raised:
                error = raised
            finally:
                self._places.release()
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(settle, result, error)

        def settle(result: object, error: BaseException | None) -> None:
            if future.done():
                return  # the call was abandoned
            if error is None:
                future.set_result(result)
            else:
                future.set_exception(error)

        try:
            threading.Thread(target=work, daemon=True).start()
        except RuntimeError as error:  # the system has no more threads
            self._places.release()
            raise ToolUnavailable(FULL) from error
        return await future


THREADS = Threads()


class Progress:
    """Receives a call's partial results until closed. Thread-safe."""

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
        """Ignore all later results."""
        self._tell = None


# --- coroutines that must end ---------------------------------------------------------------------

PATIENCE = 0.4  # seconds to clean up, and once more for calls inside


async def await_settled(answer: MaybeAwaitable[T], *, name: str) -> T:
    """Await the answer of users' code if it is awaitable, with forced cancellation."""
    return (
        await ForcedCancel(_awaited(answer), name=name) if inspect.isawaitable(answer) else answer
    )


async def _awaited(answer: Awaitable[T]) -> T:
    return await answer


async def consult(
    hook: Callable[[Event], MaybeAwaitable[Answer | None]], event: Event
) -> Answer | None:
    """The hook's answer; None if it raises, because hooks never break a run."""
    try:
        return await await_settled(hook(event), name=f"a hook on {type(event).__name__}")
    except BROKEN as broken:
        isolate(broken)
        logger.exception("a hook broke on %s", type(event).__name__)
        return None


class ForcedCancel(Generic[T]):
    """Awaits the body in the same task. On cancellation, the body has `patience` seconds to end;
    then it is abandoned.
    """

    def __init__(
        self, body: Coroutine[Any, Any, T], *, name: str, patience: float = PATIENCE
    ) -> None:
        self._body = body
        self._name = name
        self._patience = patience
        self.inside = 0  # nested ones, such as a subagent's calls
        self._alarm: asyncio.TimerHandle | None = None
        self._cancelled = 0  # the task's cancellations when it began
        self._is_over = False

    def __await__(self) -> Generator[Any, Any, T]:
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
        """The body's next step, once what it awaits is done. Waiting through a future of our own
        lets us leave even if the awaited task catches its cancellation.
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
            except BROKEN as error:  # from what it awaited, or a cancellation
                if isinstance(error, asyncio.CancelledError):
                    self._hurry()
                    if is_future and awaited.cancel():
                        continue  # the body learns of it from what it awaits, as in any task
                return partial(self._body.throw, error)
            return partial(self._body.send, None)

    def _hurry(self) -> None:
        """Start the alarm if the task was cancelled: timeouts and awaited tasks look the same at
        first. Raises CancelledError once time is up.
        """
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("only what a task awaits can be cancelled")
        if self._is_over:
            self._leave()
            task.uncancel()  # the alarm's cancellation
            raise asyncio.CancelledError
        if self._alarm is None and task.cancelling() > self._cancelled:
            self._wait(task, again=True)

    def _wait(self, task: asyncio.Task[Any], *, again: bool) -> None:
        def ring() -> None:
            self._alarm = None
            if task.cancelling() <= self._cancelled:
                return  # handled by the body itself, as `asyncio.timeout` does
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
        except BROKEN as error:  # it still does not end
            logger.debug("%s does not end at all: %r", self._name, error)


def _can_be_awaited(awaited: Any) -> bool:
    """Whether it is a future that a task may await here; asyncio reports all other cases."""
    if not asyncio.isfuture(awaited) or awaited is asyncio.current_task():
        return False
    return awaited.get_loop() is asyncio.get_running_loop()


def _bell(awaited: asyncio.Future[Any]) -> Generator[Any, Any, None]:
    """Wait until it is done, without its result."""
    rung: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def ring(_: asyncio.Future[Any]) -> None:
        if not rung.done():
            rung.set_result(None)

    awaited.add_done_callback(ring)
    yield from rung


_around: ContextVar[ForcedCancel[Any] | None] = ContextVar("around", default=None)
