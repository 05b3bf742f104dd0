"""A registry of tools with plain settings, whose tools can also be run by name."""

from __future__ import annotations

import inspect
import json
import logging
import threading
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from itertools import count
from typing import Any, TypeAlias, cast

from msgspec.structs import replace

from frostagent.clock import SystemClock
from frostagent.engine.call_checks import CallChecks
from frostagent.engine.call_executor import Batch, CallExecutor
from frostagent.engine.registry import Registry
from frostagent.engine.tool_execution import THREADS, Mask, await_settled
from frostagent.types.errors import InvalidArguments, ToolDenied
from frostagent.types.hooks import Hook, MaybeAwaitable
from frostagent.types.messages import ToolCall
from frostagent.types.ports import Approver, Clock, Observer
from frostagent.types.results import Image, ToolResult
from frostagent.types.runs import Asker, PendingCall, RunEvent, ToolStarted
from frostagent.types.suspension import Allow, ApprovalRequest, Deny
from frostagent.types.tools import ToolContext

logger = logging.getLogger(__name__)

CANNOT_WAIT = "it must be allowed first, and a call outside a run cannot wait for that"


ApprovalHandler: TypeAlias = (
    Callable[[ToolContext, str, Mapping[str, Any]], MaybeAwaitable[bool]]
    | Callable[[str, Mapping[str, Any]], MaybeAwaitable[bool]]
)
"""Approves a call by returning True; gets its context (optional), name and arguments."""


Subscriber: TypeAlias = Callable[[RunEvent], None]
"""Receives run events in order. Must not block."""


class Toolset(Registry):
    """Tools by name: each a `Tool`, a typed function, or a self-describing object.

        tools = Toolset([get_weather, delete_file], approve=["delete_file"])
        result = await tools.execute("get_weather", {"city": "Beijing"})

    `deny` and `approve` name tools that the operator forbids or wants approved; `configured` names
    present settings, for tools that require them. `hooks` apply to calls and, in an engine, to
    requests and steps. `approver` decides on calls by name and in agents' runs; `observer` receives
    calls by name (an agent has its own for its runs). Both may be functions. `mask` removes secrets
    from tools' errors. Raises TypeError for an invalid tool, hook or approver, ConfigError for two
    tools of one name.
    """

    def __init__(
        self,
        tools: Iterable[object] = (),
        *,
        clock: Clock | None = None,
        deny: Collection[str] = (),
        approve: Collection[str] = (),
        configured: Collection[str] = (),
        hooks: Sequence[Hook] = (),
        approver: Approver | ApprovalHandler | None = None,
        observer: Observer | Subscriber | None = None,
        mask: Mask = str,
    ) -> None:
        checks = CallChecks(
            clock=clock or SystemClock(),
            hooks=hooks,
            deny=deny,
            approve=approve,
            configured=configured,
            mask=mask,
        )
        super().__init__(tools, checks=checks)
        self._approver = as_approver(approver)
        self._notice = None if observer is None else told_events(observer)
        self._numbers = count(1)

    @property
    def approver(self) -> Approver | None:
        """The approver of calls that need one, or None."""
        return self._approver

    def beware(self) -> None:
        """Require approval for calls with effects beyond the conversation once a tool has read text
        from outside.
        """
        self.checks.beware()

    def set_approval_handler(self, handler: ApprovalHandler) -> None:
        """Let a function approve calls: only True allows. It gets the call's context, name and
        arguments, or just the last two. Raises TypeError for another signature.
        """
        self._approver = FunctionApprover(handler)

    def get_executor(self, name: str) -> Callable[..., Awaitable[ToolResult]] | None:
        """A function that runs this tool through `execute`; None if there is no such tool."""
        if name not in self._tools:
            return None

        async def execute(
            arguments: str | Mapping[str, object] = "", context: ToolContext | None = None
        ) -> ToolResult:
            return await self.execute(name, arguments, context)

        return execute

    async def execute(
        self,
        name: str,
        arguments: str | Mapping[str, object] = "",
        context: ToolContext | None = None,
    ) -> ToolResult:
        """Run a tool by name, with all hooks and permissions. Every failure is a result.

            result = await tools.execute("get_weather", {"city": "Beijing"})

        The approver is the context's, else the toolset's; a call that would have to wait is denied.
        The result has the call's id (the context's or a new one) and the tool's name. The observer
        receives start and end of the call.
        """
        context = context or ToolContext(
            run_id="",
            step=0,
            call_id=f"call-{next(self._numbers)}",
            conversation="",
            asker=Asker(""),
            deadline=self.checks.clock.monotonic(),
        )
        if self._approver is not None and Approver not in context.ports:
            context = replace(context, ports={**context.ports, Approver: self._approver})
        batch = Batch([ToolCall(context.call_id, name, "")])
        try:
            raw = arguments if isinstance(arguments, str) else json.dumps(dict(arguments))
            batch = Batch([ToolCall(context.call_id, name, raw)])
        except (TypeError, ValueError, RecursionError) as error:
            batch.deny(0, InvalidArguments(f"the arguments are no JSON object ({error})."))
        self._tell_started(context, batch)
        executor = CallExecutor(self)
        try:
            await executor.run(batch, [context])
            for answer in batch.answers():
                if isinstance(answer, PendingCall):
                    batch = Batch(batch.calls)
                    batch.deny(0, ToolDenied(f"{CANNOT_WAIT} ({answer.asks})"), answer)
                    await executor.run(batch, [context])
        finally:
            self._tell_finished(context, batch)
        ((_, executed),) = batch.finished()
        message = executed.message
        return ToolResult(
            message.content,
            tuple(map(Image, message.images)),
            executed.details,
            executed.terminate,
            message.is_error,
            message.code,
            call_id=message.call_id,
            name=message.name,
        )

    def _tell_started(self, context: ToolContext, batch: Batch) -> None:
        if self._notice is not None:
            started = ToolStarted(
                run_id=context.run_id,
                step=context.step,
                call=batch.calls[0],
                response_id=context.response_id,
                at=self.checks.clock.now(),
            )
            self._tell(started)

    def _tell_finished(self, context: ToolContext, batch: Batch) -> None:
        for call, executed in batch.finished():
            self._tell(executed.event(context.run_id, context.step, call, context.response_id))

    def _tell(self, event: RunEvent) -> None:
        try:
            if self._notice is not None:
                self._notice(event)
        except Exception:
            logger.exception("the observer of a toolset broke on %s", event.type)


def as_approver(approver: Approver | ApprovalHandler | None) -> Approver | None:
    """An approver, possibly made from a function. Raises TypeError for anything else."""
    if approver is None or callable(getattr(approver, "approve", None)):
        return cast("Approver | None", approver)
    return FunctionApprover(cast("ApprovalHandler", approver))


def told_events(observer: Observer | Subscriber) -> Subscriber:
    """The function of an observer, or the function itself. Raises TypeError."""
    notice: Any = getattr(observer, "notice", None) or observer
    refuse_coroutines(notice)
    return cast("Subscriber", notice)


def refuse_coroutines(function: Callable[..., Any]) -> None:
    """Raises TypeError for a coroutine function or a non-callable: observers are not awaited."""
    if not callable(function):
        raise TypeError(
            "whoever looks on is a function, or an object with notice, "
            f"not {type(function).__name__}"
        )
    if inspect.iscoroutinefunction(function):
        name = getattr(function, "__name__", function)
        raise TypeError(f"{name} is told while the run goes on: make it a plain def")


class FunctionApprover:
    """An `Approver` from a function of context, name and arguments, or just the last two. Only True
    allows.

    A plain function runs in a thread, so that it may prompt at a terminal, and answers one call at
    a time. Raises TypeError for another signature.
    """

    def __init__(self, handler: ApprovalHandler) -> None:
        self._handler: Callable[..., Any] = handler
        self._wants_context = wants_context(handler)
        self._turn = threading.Lock()

    async def approve(self, request: ApprovalRequest) -> Allow | Deny:
        given = (request.name, request.arguments)
        arguments = (request.context, *given) if self._wants_context else given
        if inspect.iscoroutinefunction(self._handler):
            answer = self._handler(*arguments)
        else:
            answer = await self._ask_in_thread(arguments)
        answer = await await_settled(answer, name="the approval handler")
        return Allow() if answer is True else Deny("the approval handler said no")

    async def _ask_in_thread(self, arguments: tuple[Any, ...]) -> Any:
        """Ask one question at a time, even after an earlier caller has gone. A caller that has gone
        is not asked for.
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
    """Whether the handler takes the context before name and arguments. Raises TypeError."""
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
