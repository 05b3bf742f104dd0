"""Plain functions that people give an agent, made into the ports that the engine and the tools
ask for.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Callable
from typing import Any, TypeAlias, assert_never, cast

from msgspec.structs import replace

from frostagent.engine.tool_execution import run_body
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
OnResult: TypeAlias = Callable[[ToolCall, str], None]
Subscriber: TypeAlias = Callable[[RunEvent], None]


class Subscribers:
    """An observer of runs that passes each event on, in order and one at a time; one that breaks
    harms no other.

    Raises TypeError for a `first` that is neither an observer nor a function.
    """

    def __init__(self, first: Observer | Subscriber | None = None) -> None:
        self._subscribers: dict[object, Subscriber] = {}
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
        for subscriber in tuple(self._subscribers.values()):
            try:
                subscriber(event)
            except Exception:
                logger.exception("a subscriber broke on %s", event.type)


def refuse_coroutines(function: Callable[..., Any]) -> None:
    """Raises TypeError for what is no function, or would have to be awaited: who only looks on,
    nobody waits for.
    """
    if not callable(function):
        raise TypeError(
            "whoever looks on is a function, or an object with notice, "
            f"not {type(function).__name__}"
        )
    if inspect.iscoroutinefunction(function):
        name = getattr(function, "__name__", function)
        raise TypeError(f"{name} is told while the run goes on: make it a plain def")


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


def told_events(observer: Observer | Subscriber) -> Subscriber:
    """The function to be told of runs: an observer's `notice`, or a function. Raises TypeError for
    what is neither.
    """
    notice: Any = getattr(observer, "notice", None) or observer
    refuse_coroutines(notice)
    return cast("Subscriber", notice)


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
            return {"type": "mention_user", "mention_user_id": str(user_id)}
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
