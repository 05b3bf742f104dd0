"""Plain functions that people give an agent, made into the ports that the engine and the tools
ask for.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import threading
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, assert_never, cast

from msgspec.structs import replace

from frostagent.engine.tool_execution import THREADS, await_settled, run_body
from frostagent.types.errors import MediaError, ToolUnavailable
from frostagent.types.hooks import MaybeAwaitable
from frostagent.types.messages import ToolCall
from frostagent.types.ports import Approver, Observer, Speaker
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
from frostagent.types.suspension import Allow, ApprovalRequest, Deny
from frostagent.types.tools import Tool, ToolContext

logger = logging.getLogger(__name__)

Payload: TypeAlias = dict[str, Any]
"""A message of `send_message`, in the words of its parameters: `messages`, and `session` where it
is not this one.
"""

SendHook: TypeAlias = Callable[[Payload], MaybeAwaitable[None]]
OnToolResult: TypeAlias = Callable[[str, str], None]
OnResult: TypeAlias = Callable[[ToolCall, str], None]
ApprovalHandler: TypeAlias = (
    Callable[[ToolContext, str, Mapping[str, Any]], MaybeAwaitable[bool]]
    | Callable[[str, Mapping[str, Any]], MaybeAwaitable[bool]]
)
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


def as_approver(approver: Approver | ApprovalHandler | None) -> Approver | None:
    """An approver as it is, or made of a function. Raises TypeError for what is neither."""
    if approver is None or callable(getattr(approver, "approve", None)):
        return cast("Approver | None", approver)
    return FunctionApprover(cast("ApprovalHandler", approver))


class FunctionApprover:
    """An `Approver` from a function that answers True or False.

    It gets the call's context, the tool's name and the arguments, as in seeds/000; one of two
    parameters the name and the arguments. A plain function runs in a thread, so that it may ask at
    a terminal, and answers one call after the other. Raises TypeError for what takes neither.
    """

    def __init__(self, handler: ApprovalHandler) -> None:
        self._handler: Callable[..., Any] = handler
        self._wants_context = wants_context(handler)
        self._turn = threading.Lock()

    async def approve(self, request: ApprovalRequest) -> Allow | Deny:
        """Allowed by True and by nothing else."""
        given = (request.name, request.arguments)
        arguments = (request.context, *given) if self._wants_context else given
        if inspect.iscoroutinefunction(self._handler):
            answer = self._handler(*arguments)
        else:
            answer = await self._ask_in_thread(arguments)
        answer = await await_settled(answer, name="the approval handler")
        return Allow() if answer is True else Deny("the approval handler said no")

    async def _ask_in_thread(self, arguments: tuple[Any, ...]) -> Any:
        """One question at a time, also where nobody waits for the answer any more; then none is
        begun.
        """
        given_up = threading.Event()

        def ask() -> Any:
            with self._turn:
                return False if given_up.is_set() else self._handler(*arguments)

        try:
            return await THREADS.run(ask)
        finally:
            given_up.set()


def wants_context(handler: Callable[..., Any]) -> bool:
    """Whether an approval handler takes the call's context before name and arguments. Raises
    TypeError.
    """
    if not callable(handler):
        raise TypeError(
            f"an approver is an object with approve, or a function, not {type(handler).__name__}"
        )
    parameters = inspect.signature(handler).parameters.values()
    places = [
        each
        for each in parameters
        if each.kind in {each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD}
    ]
    needed = [each for each in places if each.default is each.empty]
    takes_any = any(each.kind is each.VAR_POSITIONAL for each in parameters)
    others = [
        each for each in parameters if each.kind is each.KEYWORD_ONLY and each.default is each.empty
    ]
    if others or len(needed) > 3 or (len(places) < 2 and not takes_any):
        name = getattr(handler, "__name__", type(handler).__name__)
        raise TypeError(
            f"{name} is to take a call's context, its name and arguments, or the last two"
        )
    return len(needed) == 3 or (len(needed) < 2 and (takes_any or len(places) > 2))


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
