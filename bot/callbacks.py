"""What people give an agent as plain functions, made into the ports that the engine and the tools ask for."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeAlias, assert_never

from bot.domain.actions import Attachment, Confirmed, MediaKind, Receipt, SendSegment
from bot.domain.errors import MediaError, ToolUnavailable
from bot.domain.hooks import MaybeAwaitable
from bot.domain.ports import Speaker
from bot.domain.run import RunEvent, ToolFinished
from bot.domain.segments import Face, Mention, MentionAll, Quote, Text
from bot.domain.suspension import Allow, ApprovalRequest, Deny
from bot.domain.tool import Tool, ToolContext

logger = logging.getLogger(__name__)

Payload: TypeAlias = dict[str, Any]
"""What `send_message` says, in the words of its parameters: `messages`, and `session` where it is not this one."""

SendHook: TypeAlias = Callable[[Payload], MaybeAwaitable[None]]
OnToolResult: TypeAlias = Callable[[str, str], None]
ApprovalHandler: TypeAlias = Callable[[str, Mapping[str, Any]], MaybeAwaitable[bool]]
Subscriber: TypeAlias = Callable[[RunEvent], None]


class Subscribers:
    """An observer of runs that passes each event on, in order and one at a time; one that breaks harms no other."""

    def __init__(self) -> None:
        self._subscribers: dict[object, Subscriber] = {}

    def add(self, subscriber: Subscriber) -> Callable[[], None]:
        """Tell it every event from now on; what this returns ends that. Raises TypeError for a coroutine function."""
        refuse_coroutines(subscriber)
        mark = object()
        self._subscribers[mark] = subscriber
        return lambda: void(self._subscribers.pop(mark, None))

    def notice(self, event: RunEvent) -> None:
        """Pass it on."""
        for subscriber in tuple(self._subscribers.values()):
            try:
                subscriber(event)
            except Exception:
                logger.exception("a subscriber broke on %s", event.type)


def void(_: object) -> None:
    """Nothing."""


def refuse_coroutines(function: Callable[..., Any]) -> None:
    """Raises TypeError for a function that would have to be awaited: who only looks on, nobody waits for."""
    if inspect.iscoroutinefunction(function):
        raise TypeError(f"{getattr(function, '__name__', function)} is told while the run goes on: make it a plain def")


def told_results(on_tool_result: OnToolResult) -> Subscriber:
    """A subscriber that tells name and output of each finished call, as the model reads it.

    In the order of the calls, once all calls of their step have ended. Raises TypeError for a coroutine function.
    """
    refuse_coroutines(on_tool_result)

    def tell(event: RunEvent) -> None:
        if isinstance(event, ToolFinished):
            on_tool_result(event.call.name, event.result.content)

    return tell


class FunctionApprover:
    """An `Approver` from a function of the tool's name and arguments that answers True or False.

    A plain function runs in a thread, so that it may ask at a terminal.
    """

    def __init__(self, handler: ApprovalHandler) -> None:
        self._handler = handler

    async def approve(self, request: ApprovalRequest) -> Allow | Deny:
        """Allowed by True and by nothing else."""
        if inspect.iscoroutinefunction(self._handler):
            answer = await self._handler(request.name, request.arguments)
        else:
            answer = await asyncio.to_thread(self._handler, request.name, request.arguments)
            answer = await answer if inspect.isawaitable(answer) else answer
        return Allow() if answer is True else Deny("the approval handler said no")


class PlainMedia:
    """The `Media` port that takes paths and urls at their word: whoever hears the payload looks at them."""

    async def attach(self, kind: MediaKind, *, path: str = "", url: str = "", name: str = "") -> Attachment:
        """The path, else the url. Raises MediaError where there is neither."""
        if not (path.strip() or url.strip()):
            raise MediaError(f"{kind} needs a path or a url")
        return Attachment(kind, path.strip() or url.strip(), name)


class HookSpeaker:
    """The `Speaker` of one run that hands what is said to a hook; hooks of one agent never run side by side.

    Without a hook nobody hears it: what would be said is kept in `said`.
    """

    def __init__(self, hook: SendHook | None, lock: asyncio.Lock) -> None:
        self.hook = hook
        self.lock = lock
        self.said: list[Payload] = []

    async def say(self, segments: tuple[SendSegment, ...], *, session: str = "") -> tuple[Receipt, ...]:
        """Hand it to the hook, now. Raises what the hook raises, ToolUnavailable where there is none."""
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
    """Segments in the words of `send_message`, so that a hook reads what the model wrote, made regular."""
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
            return await tool.run(context, arguments)
        own = HookSpeaker(void, asyncio.Lock())
        result = await tool.run(replace(context, ports={**context.ports, Speaker: own}), arguments)
        return own.said[0] if len(own.said) == 1 else own.said or result

    return replace(tool, function=speak, wants_context=True)
