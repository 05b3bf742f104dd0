"""Hooks: functions that observe a run and may change it.

    before_request   before each model request: may reshape the messages or switch the model
    before_call      after a call's arguments were validated, before its permission is
                     checked: may block it, change its arguments, or end the run
    after_call       after a call has its result or was refused: may rewrite the result or end
                     the run
    after_step       after a step with calls, when all results are in the transcript: may end
                     the run

Hooks are functions or coroutine functions. Within a run they are never called concurrently: the
hooks of a step's calls run in source order, all `before_call` before the first body, all
`after_call` after the last. Every `before_call` is followed by an `after_call`, even in a cancelled
run. For a call that waits for an approval, `after_call` runs once the call has its result, possibly
in another process. A hook that raises turns its call into an error result; it never breaks the run.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, ClassVar, Literal, TypeAlias, TypeVar

from msgspec import Struct

from frostagent.types.messages import AssistantMessage, Message, ToolMessage
from frostagent.types.ports import ChatModel
from frostagent.types.results import ToolResult

T = TypeVar("T")
MaybeAwaitable: TypeAlias = Awaitable[T] | T

Metadata: TypeAlias = Mapping[str, Any]
"""`run`, `step`, `call`, `response` and `conversation` as text, and `asker` (a user id)."""


# --- events ---------------------------------------------------------------------------------------


class RequestEvent(Struct, frozen=True, kw_only=True, tag="request.before"):
    """A model request is about to be sent: its complete `messages`, and its `model`."""

    messages: tuple[Message, ...]
    model: ChatModel
    metadata: Metadata
    type: ClassVar[Literal["request.before"]] = "request.before"


class BeforeCall(Struct, frozen=True, kw_only=True, tag="tool_call.before"):
    """A call is about to be permitted and run. `input` is valid, repaired JSON."""

    name: str
    input: Mapping[str, Any]
    metadata: Metadata
    output: None = None
    error: None = None
    type: ClassVar[Literal["tool_call.before"]] = "tool_call.before"


class AfterCall(Struct, frozen=True, kw_only=True, tag="tool_call.after"):
    """A call is over. `error` is the failure as the model will read it, or None.

    `exception` is what the tool raised, or the `ToolError` of a refused call.
    """

    name: str
    input: Mapping[str, Any]
    output: ToolResult
    error: str | None
    metadata: Metadata
    exception: BaseException | None = None
    type: ClassVar[Literal["tool_call.after"]] = "tool_call.after"


class StepEvent(Struct, frozen=True, kw_only=True, tag="step.after"):
    """A step is over: the model's message, and the result of each call in call order."""

    message: AssistantMessage
    results: tuple[ToolMessage, ...]
    metadata: Metadata
    type: ClassVar[Literal["step.after"]] = "step.after"


# --- answers --------------------------------------------------------------------------------------


class Reshape(Struct, frozen=True, kw_only=True):
    """`messages` for this request only (the transcript stays), `model` from now on."""

    messages: tuple[Message, ...] | None = None
    model: ChatModel | None = None


class Block(Struct, frozen=True):
    """Do not run the call. The model reads the reason."""

    reason: str


class Change(Struct, frozen=True):
    """Other arguments, as JSON. They are validated like the model's own."""

    arguments: Mapping[str, Any]


class Rewrite(Struct, frozen=True):
    """Replace the call's result."""

    result: ToolResult


class StopRun(Struct, frozen=True):
    """End the run after this step, as stopped. The reason is for the log.

    Returned before a call, no call of the step is run, and each gets a "cancelled" result. Returned
    after a call, existing results stay, and calls still waiting for an approval are cancelled.
    """

    reason: str


class Hook(Struct, frozen=True, kw_only=True):
    """Functions to call at one or more points of a run. Several hooks are called in their order.

        Hook(before_call=lambda event: Block("not today") if event.name == "delete" else None)

    Raises TypeError for a value that is not callable.
    """

    before_request: Callable[[RequestEvent], MaybeAwaitable[Reshape | None]] | None = None
    before_call: Callable[[BeforeCall], MaybeAwaitable[Block | Change | StopRun | None]] | None = (
        None
    )
    after_call: Callable[[AfterCall], MaybeAwaitable[Rewrite | StopRun | None]] | None = None
    after_step: Callable[[StepEvent], MaybeAwaitable[StopRun | None]] | None = None

    def __post_init__(self) -> None:
        for place in self.__struct_fields__:
            hook = getattr(self, place)
            if hook is not None and not callable(hook):
                raise TypeError(f"{place} takes a function of one event, not {type(hook).__name__}")


def verified(hooks: Iterable[Hook]) -> tuple[Hook, ...]:
    """The hooks as a tuple. Raises TypeError for anything else, such as a bare function."""
    if isinstance(hooks, Hook) or not isinstance(hooks, Iterable):
        raise TypeError(f"hooks are a list, as in [Hook(...)], not {type(hooks).__name__}")
    told = tuple(hooks)
    for each in told:
        if not isinstance(each, Hook):
            name = getattr(each, "__name__", type(each).__name__)
            raise TypeError(
                f"{name} is no Hook: say where it is asked, as in Hook(before_call={name})"
            )
    return told
