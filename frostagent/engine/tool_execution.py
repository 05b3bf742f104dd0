"""The code of others as the engine runs it: the bodies of tools, whether they are available, what
their errors mean; and hooks, checks and approvers, all of which must end when they are cancelled.

Plain functions run in threads of their own, at most `MAX_THREADS` at once. Not in the loop's own
executor: others need that (the resolver of names does), and a function that never returns would
keep its place there, and hold up the end of the process.

Coroutines are driven by hand (`ForcedCancel`). `except:` in a loop is soon written, and then
nothing ends it: neither a deadline nor a stop, and the questions behind it wait for ever. Such a
coroutine is left where it stands.
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
    coroutine that does not end when it is cancelled is left as it stands.
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
    """Why the tool cannot be used right now, by its own word; empty where it can. Never raises."""
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
    """Why not, from what `available` answered: a bool, a text, or both (seeds/004)."""
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


LONGEST = 300  # characters of a tool's own words on what was wrong

Mask = Callable[[str], str]


def record_failure(state: CallState, error: BaseException, *, mask: Mask = str) -> None:
    """Make what was raised the result of the call. Raises again what is none of its business.

    A ToolError, and the ValueError of a tool's own code, are told in their words: that is how a
    tool says what was wrong. Anything else is a bug, whose words are for the log. `mask` takes the
    secrets out of what is told.
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
    """The tool's own words on what was wrong, on one line and without secrets; empty where it says
    nothing.
    """
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


# --- coroutines that have to let go ---------------------------------------------------------------

PATIENCE = 0.4  # seconds to clean up, and once as many for what goes on inside


async def await_settled(answer: MaybeAwaitable[T], *, name: str) -> T:
    """What code of others has answered; where that is to be awaited, it has to let go. Raises what
    it raises.
    """
    return (
        await ForcedCancel(_awaited(answer), name=name) if inspect.isawaitable(answer) else answer
    )


async def _awaited(answer: Awaitable[T]) -> T:
    return await answer


async def consult(
    hook: Callable[[Event], MaybeAwaitable[Answer | None]], event: Event
) -> Answer | None:
    """The hook's answer; None where it breaks, since a run is never broken by one."""
    try:
        return await await_settled(hook(event), name=f"a hook on {type(event).__name__}")
    except BROKEN as broken:
        isolate(broken)
        logger.exception("a hook broke on %s", type(event).__name__)
        return None


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
