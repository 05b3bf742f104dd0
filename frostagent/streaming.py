"""Streams of run events: what `Agent.stream` returns."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Generic, Self, TypeAlias

from typing_extensions import TypeVar

from frostagent.reply import Reply
from frostagent.types.messages import ReasoningDelta, TextDelta, TextDiscarded
from frostagent.types.runs import ToolFinished, ToolStarted

T = TypeVar("T", default=str)

BETWEEN_ANSWERS = "\n\n"


@dataclass(frozen=True, slots=True)
class Finished(Generic[T]):
    """The last event: the run ended or waits for an approval. `reply` is as from `Agent.run`."""

    reply: Reply[T]


StreamEvent: TypeAlias = (
    TextDelta | ReasoningDelta | TextDiscarded | ToolStarted | ToolFinished | Finished[T]
)
"""In order: the text of an answer, its calls, the next answer, and the end."""

Streamed: TypeAlias = Callable[[Callable[[StreamEvent[Any]], None]], Awaitable[Reply[T]]]
"""Runs a question, sending events to a function."""


class AgentStream(Generic[T]):
    """The events of one run, inside an `async with` block:

        async with agent.stream("How is the weather?") as stream:
            async for event in stream:
                match event:
                    case TextDelta(text=text):
                        print(text, end="")
                    case ToolStarted(call=call):
                        print("calling", call.name)
                    case Finished(reply=reply):
                        print(reply.usage)

    Each event is delivered once and queued until read: iterate over either these or `text()`.
    Leaving the block early cancels the run and its request to the model. The errors of `Agent.run`
    are raised here, after the events before them.

    The text since the last call (`ToolStarted`) or `TextDiscarded` makes up one answer; the last
    answer is the text of the reply.
    """

    def __init__(self, run: Streamed[T], *, ends_with_text: bool = True) -> None:
        """`ends_with_text`: the last text equals the reply's, whatever the model streamed."""
        self._run = run
        self._ends_with_text = ends_with_text
        self._events: asyncio.Queue[StreamEvent[T] | None] = asyncio.Queue()
        self._tasks = asyncio.TaskGroup()
        self._task: asyncio.Task[Reply[T] | Exception] | None = None
        self._is_read = False  # to its end
        self._text = ""  # of the current answer

    async def __aenter__(self) -> Self:
        """Begin the run. Raises RuntimeError if it has begun."""
        if self._task is not None:
            raise RuntimeError("a stream is one run: call agent.stream(...) once more for another")
        await self._tasks.__aenter__()
        self._task = self._tasks.create_task(self._follow())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._task is not None:
            self._task.cancel()
            await self._tasks.__aexit__(None, None, None)  # else it would wrap the exception

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> StreamEvent[T]:
        task = self._entered()
        if self._is_read:
            raise StopAsyncIteration
        event = await self._events.get()
        if event is not None:
            return event
        self._is_read = True
        await asyncio.wait({task})
        if not task.cancelled() and isinstance(error := task.result(), Exception):
            raise error
        raise StopAsyncIteration

    async def text(self) -> AsyncIterator[str]:
        """The text as the model writes it, piece by piece. Text before a call is included, followed
        by a blank line.

        Pieces cannot be taken back. If an attempt fails in the middle, the next one continues if it
        begins with the same words; otherwise a blank line separates them. The exact text of the
        reply is `(await stream.result()).text`.
        """
        given = ""  # of the current answer
        again: str | None = None  # what an aborted attempt has delivered
        is_apart = False
        async for event in self:
            match event:
                case TextDelta(text=text):
                    given += text
                    if again is not None and again.startswith(given):
                        continue
                    if again is not None:
                        goes_on = given.startswith(again)
                        is_apart |= not goes_on and bool(again)
                        text, again = given[len(again) :] if goes_on else given, None
                    yield BETWEEN_ANSWERS + text if is_apart else text
                    is_apart = False
                case TextDiscarded():
                    again, given = max(again or "", given, key=len), ""
                case ToolStarted() if given or again:
                    given, again, is_apart = "", None, True
                case _:
                    pass

    async def result(self) -> Reply[T]:
        """The reply, once the run has ended; also after the block, if it ended in it. Raises what
        `Agent.run` raises, and RuntimeError if the block was left early.
        """
        task = self._entered()
        await asyncio.wait({task})
        if task.cancelled():
            raise RuntimeError("there is no result: the stream was left before its end")
        reply = task.result()
        if isinstance(reply, Exception):
            raise reply
        return reply

    def _entered(self) -> asyncio.Task[Reply[T] | Exception]:
        if self._task is None:
            raise RuntimeError("a stream runs in a block: async with agent.stream(...) as stream:")
        return self._task

    async def _follow(self) -> Reply[T] | Exception:
        """The reply, or the error to raise in the reader."""
        try:
            reply = await self._run(self._tell)
            if self._ends_with_text and reply.waiting is None:
                self._settle(reply.text)
            self._tell(Finished(reply))
        except Exception as error:  # noqa: BLE001  # raised where the stream is read
            return error
        else:
            return reply
        finally:
            self._events.put_nowait(None)

    def _tell(self, event: StreamEvent[T]) -> None:
        match event:
            case TextDelta(text=text):
                self._text += text
            case TextDiscarded() | ToolStarted():
                self._text = ""
            case _:
                pass
        self._events.put_nowait(event)

    def _settle(self, text: str) -> None:
        """Send the rest of the reply's text, as when the engine answers for the model."""
        if self._text.endswith(text) and (text or not self._text):
            return
        if not text.startswith(self._text):
            self._tell(TextDiscarded())
        if rest := text[len(self._text) :]:
            self._tell(TextDelta(rest))
