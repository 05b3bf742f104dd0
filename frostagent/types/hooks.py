"""Where somebody else may have a say in a run, each place with one clear moment, what it is told,
what it may answer.

    before_request   each model request: may reshape what it shows, and switch the model
    before_call      a call whose arguments fit, before it is permitted: may block it, change its
                     arguments, end the run
    after_call       a call with its result, or refused: may rewrite the result, end the run
    after_step       a step with calls is whole, the results in the transcript: may end the run

All are functions or coroutine functions. Those of one run are never called concurrently: the hooks
of a step's calls run in source order, all `before_call` before the first body, all `after_call`
after the last. Every before has an after, also in a run that is cancelled. A call that waits for
somebody's word has had its before and gets its after once it has its result, in whichever process
that is. A hook that raises makes its call an error result; a run is never broken by one.
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
"""`run`, `step`, `call`, `response` and `conversation` (written as text), and `asker` (a user
id).
"""


# --- what a hook is told --------------------------------------------------------------------------


class RequestEvent(Struct, frozen=True, kw_only=True, tag="request.before"):
    """A model is about to be asked. `messages` is all it would read, `model` the one that would
    answer.
    """

    messages: tuple[Message, ...]
    model: ChatModel
    metadata: Metadata
    type: ClassVar[Literal["request.before"]] = "request.before"


class BeforeCall(Struct, frozen=True, kw_only=True, tag="tool_call.before"):
    """A call is about to be permitted and run; `input` are its arguments as JSON has them, mended
    and validated.
    """

    name: str
    input: Mapping[str, Any]
    metadata: Metadata
    output: None = None
    error: None = None
    type: ClassVar[Literal["tool_call.before"]] = "tool_call.before"


class AfterCall(Struct, frozen=True, kw_only=True, tag="tool_call.after"):
    """A call is over. `error` is what went wrong as the model will read it, None where nothing did;
    `exception` is what was raised, a tool's own or the `ToolError` of a call that was refused.
    """

    name: str
    input: Mapping[str, Any]
    output: ToolResult
    error: str | None
    metadata: Metadata
    exception: BaseException | None = None
    type: ClassVar[Literal["tool_call.after"]] = "tool_call.after"


class StepEvent(Struct, frozen=True, kw_only=True, tag="step.after"):
    """A step is over: what the model said and called, and what came of each call, in call order."""

    message: AssistantMessage
    results: tuple[ToolMessage, ...]
    metadata: Metadata
    type: ClassVar[Literal["step.after"]] = "step.after"


# --- what it may answer ---------------------------------------------------------------------------


class Reshape(Struct, frozen=True, kw_only=True):
    """Other messages for this one request (the transcript stays what it is), another model from
    this request on.
    """

    messages: tuple[Message, ...] | None = None
    model: ChatModel | None = None


class Block(Struct, frozen=True):
    """The call is not run; the model reads the reason."""

    reason: str


class Change(Struct, frozen=True):
    """Other arguments, as JSON has them; they are validated like the model's own."""

    arguments: Mapping[str, Any]


class Rewrite(Struct, frozen=True):
    """Another result in the place of the one there is."""

    result: ToolResult


class StopRun(Struct, frozen=True):
    """The run ends with this step, as stopped; the reason is for the log.

    Before a call it means that no call of the step is run: each has its result all the same, as
    cancelled. After one the results stay, and what still waits for somebody's word waits no more.
    """

    reason: str


class Hook(Struct, frozen=True, kw_only=True):
    """What one party has to say, at one or more places; several are asked in their order.

    Raises TypeError for what cannot be called.
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
    """The hooks as a tuple. Raises TypeError for what is none, as a bare function is."""
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
