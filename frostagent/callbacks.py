"""Plain functions that people give an agent, made into the ports that the engine and the tools
ask for.
"""

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
"""A message of `send_message`, in the words of its parameters: `messages`, and `session` where it
is not this one.
"""

SendHook: TypeAlias = Callable[[Payload], MaybeAwaitable[None]]
OnToolResult: TypeAlias = Callable[[str, str], None]
OnToolError: TypeAlias = Callable[[Exception], str | None]
OnError: TypeAlias = Callable[[BaseException], str | None]
OnResult: TypeAlias = Callable[[ToolCall, str], None]


class Subscribers:
    """An observer of runs that passes each event on, in order and one at a time; one that breaks
    harms no other. Where a tracer provider is set it makes spans as well.

    Raises TypeError for a `first` that is neither an observer nor a function.
    """

    def __init__(self, first: Observer | Subscriber | None = None) -> None:
        self._subscribers: dict[object, Subscriber] = {}
        self._spans: Observer | None = None
        if first is not None:
            self.add(told_events(first))

    def add(self, subscriber: Subscriber) -> Callable[[], None]:
        """Tell it every event from now on; what this returns ends that. Raises TypeError for a
        coroutine function.
        """
        refuse_coroutines(subscriber)
        mark = object()
        self._subscribers[mark] = subscriber

        def unsubscribe() -> None:
            self._subscribers.pop(mark, None)

        return unsubscribe

    def notice(self, event: RunEvent) -> None:
        """Pass it on."""
        for subscriber in (*self._subscribers.values(), self._make_spans):
            try:
                subscriber(event)
            except Exception:
                logger.exception("a subscriber broke on %s", event.type)

    def _make_spans(self, event: RunEvent) -> None:
        """Make spans if the process has loaded OpenTelemetry, as whoever sets a tracer provider
        has, and no subscriber makes them.
        """
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
    """A function that tells name and output of each call, as the model reads it, as soon as that is
    so; it breaks no run.

    Raises TypeError for what cannot be called, or would have to be awaited.
    """
    refuse_coroutines(on_tool_result)

    def tell(call: ToolCall, output: str) -> None:
        try:
            on_tool_result(call.name, output)
        except Exception:
            logger.exception("on_tool_result broke on %s", call.name)

    return tell


def worded_errors(on_tool_error: OnToolError) -> OnError:
    """A function that says what the model is told of what a call raised; None leaves that as it is,
    and so does a function that breaks.

    Raises TypeError for what cannot be called, or would have to be awaited.
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
    """The `Media` port that takes paths and urls at their word: whoever hears the payload looks at
    them.
    """

    async def attach(
        self, kind: MediaKind, *, path: str = "", url: str = "", name: str = ""
    ) -> Attachment:
        """The path, else the url. Raises MediaError where there is neither."""
        if not (path.strip() or url.strip()):
            raise MediaError(f"{kind} needs a path or a url")
        return Attachment(kind, path.strip() or url.strip(), name)


class HookSpeaker:
    """The `Speaker` of one run that hands what is said to a hook; hooks of one agent never run side
    by side.

    Without a hook nobody hears it: what would be said is kept in `said`.
    """

    def __init__(self, hook: SendHook | None, lock: asyncio.Lock) -> None:
        self.hook = hook
        self.lock = lock
        self.said: list[Payload] = []

    async def say(
        self,
        segments: tuple[SendSegment, ...],
        *,
        session: str = "",
        allowed: bool = False,  # noqa: ARG002  # the port has it; here it is the hook's to refuse
    ) -> tuple[Receipt, ...]:
        """Hand it to the hook, now.

        Raises what the hook raises, ToolUnavailable where there is none.
        """
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
    """Segments in the words of `send_message`, so that a hook reads what the model wrote, made
    regular.
    """
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
    """A tool that speaks: where nobody hears it, what it would say is its result."""
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
