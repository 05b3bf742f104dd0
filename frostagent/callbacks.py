"""Adapts functions that users pass to an agent to the ports of the engine and the tools."""

from __future__ import annotations

import asyncio
import inspect
import logging
import sys
from collections.abc import Callable
from typing import Any, TypeAlias, assert_never

from msgspec.structs import replace

from frostagent.engine.tool_execution import run_body
from frostagent.engine.toolset import Subscriber, refuse_coroutines, told_events
from frostagent.types.errors import MediaError, ToolUnavailable
from frostagent.types.hooks import MaybeAwaitable
from frostagent.types.messages import ToolCall
from frostagent.types.ports import Observer, Speaker
from frostagent.types.runs import RunEvent
from frostagent.types.speech import (
    Attachment,
    Confirmed,
    Face,
    MediaKind,
    Mention,
    MentionAll,
    Quote,
    Receipt,
    SendSegment,
    Text,
)
from frostagent.types.tools import Tool, ToolContext

logger = logging.getLogger(__name__)

Payload: TypeAlias = dict[str, Any]
"""A message of `send_message`, as its parameters: `messages`, and maybe `session`."""

SendHook: TypeAlias = Callable[[Payload], MaybeAwaitable[None]]
"""Receives a run's messages, as parameters of `send_message`. May be a coroutine function."""
OnToolResult: TypeAlias = Callable[[str, str], None]
"""Receives a tool's name and its output, as the model reads it."""
OnToolError: TypeAlias = Callable[[Exception], str | None]
"""Receives an exception of a call; returns another text for the model, or None."""
OnError: TypeAlias = Callable[[BaseException], str | None]
OnResult: TypeAlias = Callable[[ToolCall, str], None]


class Subscribers:
    """Passes each run event to all subscribers, in order. A subscriber that raises does not affect
    the others. Also makes spans if a tracer provider is set.

    Raises TypeError for a `first` that is neither an observer nor a function.
    """

    def __init__(self, first: Observer | Subscriber | None = None) -> None:
        self._subscribers: dict[object, Subscriber] = {}
        self._spans: Observer | None = None
        if first is not None:
            self.add(told_events(first))

    def add(self, subscriber: Subscriber) -> Callable[[], None]:
        """Send every event from now on; returns a stop function. Raises TypeError."""
        refuse_coroutines(subscriber)
        mark = object()
        self._subscribers[mark] = subscriber

        def unsubscribe() -> None:
            self._subscribers.pop(mark, None)

        return unsubscribe

    def notice(self, event: RunEvent) -> None:
        for subscriber in (*self._subscribers.values(), self._make_spans):
            try:
                subscriber(event)
            except Exception:
                logger.exception("a subscriber broke on %s", event.type)

    def _make_spans(self, event: RunEvent) -> None:
        """Make spans if OpenTelemetry is loaded, unless a subscriber makes them."""
        if "opentelemetry.trace" not in sys.modules:
            return
        from frostagent.tracing import SpanObserver  # noqa: PLC0415  # most programs have no spans

        owners = [getattr(each, "__self__", None) for each in self._subscribers.values()]
        if any(isinstance(owner, SpanObserver) for owner in owners):
            return
        if self._spans is None:
            self._spans = SpanObserver()
        self._spans.notice(event)


def told_results(on_tool_result: OnToolResult) -> OnResult:
    """A callback with each call's output as the model reads it. An exception in it is only logged.
    Raises TypeError for a coroutine function or a value that is not callable.
    """
    refuse_coroutines(on_tool_result)

    def tell(call: ToolCall, output: str) -> None:
        try:
            on_tool_result(call.name, output)
        except Exception:
            logger.exception("on_tool_result broke on %s", call.name)

    return tell


def worded_errors(on_tool_error: OnToolError) -> OnError:
    """A callback that returns the text a model reads about an exception. None, or an exception in
    the callback, keeps the default. Raises TypeError for a coroutine function or a value that is
    not callable.
    """
    refuse_coroutines(on_tool_error)

    def say(error: BaseException) -> str | None:
        if not isinstance(error, Exception):
            return None
        try:
            words = on_tool_error(error)
        except Exception:
            logger.exception("on_tool_error broke on %s", type(error).__name__)
            return None
        return None if words is None else str(words)

    return say


class PlainMedia:
    """A `Media` port that passes paths and URLs on unchecked: the send hook must check them."""

    async def attach(
        self, kind: MediaKind, *, path: str = "", url: str = "", name: str = ""
    ) -> Attachment:
        """Use the path, else the URL. Raises MediaError if both are empty."""
        if not (path.strip() or url.strip()):
            raise MediaError(f"{kind} needs a path or a url")
        return Attachment(kind, path.strip() or url.strip(), name)


class HookSpeaker:
    """A `Speaker` that passes a run's messages to a hook, one at a time for the whole agent."""

    def __init__(self, hook: SendHook | None, lock: asyncio.Lock) -> None:
        self.hook = hook
        self.lock = lock
        self.said: list[Payload] = []

    async def say(
        self,
        segments: tuple[SendSegment, ...],
        *,
        session: str = "",
        allowed: bool = False,  # noqa: ARG002  # part of the port; here the hook decides
    ) -> tuple[Receipt, ...]:
        """Call the hook now. Raises what the hook raises, and ToolUnavailable without a hook."""
        if self.hook is None:
            raise ToolUnavailable("nobody hears what is said here. Say it in your final answer.")
        payload = payload_of(segments, session)
        async with self.lock:
            waited = self.hook(payload)
            if inspect.isawaitable(waited):
                await waited
        self.said.append(payload)
        return (Confirmed(""),)


def payload_of(segments: tuple[SendSegment, ...], session: str = "") -> Payload:
    """Segments as parameters of `send_message`, normalised."""
    payload: Payload = {"messages": [_part(segment) for segment in segments]}
    return {**payload, "session": session} if session else payload


def _part(segment: SendSegment) -> dict[str, str]:
    match segment:
        case Text(text=text):
            return {"type": "plain", "text": text}
        case Mention(user_id=user_id):
            return {"type": "mention_user", "mention_user_id": user_id}
        case MentionAll():
            return {"type": "mention_user", "mention_user_id": "all"}
        case Quote(message_id=message_id):
            return {"type": "quote", "message_id": message_id}
        case Face(id=number):
            return {"type": "face", "id": number}
        case Attachment(kind=kind, source=source):
            return {"type": kind, "url" if "://" in source else "path": source}
        case _:
            assert_never(segment)


def speaking(tool: Tool) -> Tool:
    """A tool that uses a `Speaker`: without a send hook, its messages become its result."""
    if Speaker not in tool.needs or tool.function is None:
        return tool

    async def speak(context: ToolContext, **arguments: Any) -> Any:
        speaker = context.ports.get(Speaker)
        if not isinstance(speaker, HookSpeaker) or speaker.hook is not None:
            return await run_body(tool, context, arguments)
        said: list[Payload] = []
        own = HookSpeaker(said.append, asyncio.Lock())
        result = await run_body(
            tool, replace(context, ports={**context.ports, Speaker: own}), arguments
        )
        return said[0] if len(said) == 1 else said or result

    return replace(tool, function=speak, wants_context=True)
