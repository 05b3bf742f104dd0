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
from dataclasses import dataclass, field, fields
from typing import Any, Literal, TypeAlias, TypeVar

from bot.domain.chat import AssistantMessage, Message, ToolMessage
from bot.domain.ports import ChatModel
from bot.domain.result import ToolResult

T = TypeVar("T")
MaybeAwaitable: TypeAlias = Awaitable[T] | T

Metadata: TypeAlias = Mapping[str, Any]
"""`run`, `step`, `call`, `response` and `conversation` (written as text), and `asker` (a user
id).
"""


# --- what a hook is told --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestEvent:
    """A model is about to be asked. `messages` is all it would read, `model` the one that would
    answer.
    """

    messages: tuple[Message, ...]
    model: ChatModel
    metadata: Metadata = field(hash=False)
    type: Literal["request.before"] = "request.before"


@dataclass(frozen=True, slots=True, kw_only=True)
class BeforeCall:
    """A call is about to be permitted and run; `input` are its arguments as JSON has them, mended
    and validated.
    """

    name: str
    input: Mapping[str, Any] = field(hash=False)
    metadata: Metadata = field(hash=False)
    output: None = None
    error: None = None
    type: Literal["tool_call.before"] = "tool_call.before"


@dataclass(frozen=True, slots=True, kw_only=True)
class AfterCall:
    """A call is over. `error` is what went wrong as the model will read it, None where nothing
    did.
    """

    name: str
    input: Mapping[str, Any] = field(hash=False)
    output: ToolResult
    error: str | None
    metadata: Metadata = field(hash=False)
    type: Literal["tool_call.after"] = "tool_call.after"


@dataclass(frozen=True, slots=True, kw_only=True)
class StepEvent:
    """A step is over: what the model said and called, and what came of each call, in call order."""

    message: AssistantMessage
    results: tuple[ToolMessage, ...]
    metadata: Metadata = field(hash=False)
    type: Literal["step.after"] = "step.after"


# --- what it may answer ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Reshape:
    """Other messages for this one request (the transcript stays what it is), another model from
    this request on.
    """

    messages: tuple[Message, ...] | None = None
    model: ChatModel | None = None


@dataclass(frozen=True, slots=True)
class Block:
    """The call is not run; the model reads the reason."""

    reason: str


@dataclass(frozen=True, slots=True)
class Change:
    """Other arguments, as JSON has them; they are validated like the model's own."""

    arguments: Mapping[str, Any] = field(hash=False)


@dataclass(frozen=True, slots=True)
class Rewrite:
    """Another result in the place of the one there is."""

    result: ToolResult


@dataclass(frozen=True, slots=True)
class StopRun:
    """The run ends with this step, as stopped; the reason is for the log.

    Before a call it means that no call of the step is run: each has its result all the same, as
    cancelled. After one the results stay, and what still waits for somebody's word waits no more.
    """

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Hooks:
    """One party's hooks; a place left out is no hook. Several of these are asked in
    their order.

    Raises TypeError for what cannot be called.
    """

    before_request: Callable[[RequestEvent], MaybeAwaitable[Reshape | None]] | None = None
    before_call: Callable[[BeforeCall], MaybeAwaitable[Block | Change | StopRun | None]] | None = (
        None
    )
    after_call: Callable[[AfterCall], MaybeAwaitable[Rewrite | StopRun | None]] | None = None
    after_step: Callable[[StepEvent], MaybeAwaitable[StopRun | None]] | None = None

    def __post_init__(self) -> None:
        for place, hook in ((each.name, getattr(self, each.name)) for each in fields(self)):
            if hook is not None and not callable(hook):
                raise TypeError(f"{place} takes a function of one event, not {type(hook).__name__}")


def verified(hooks: Iterable[Hooks]) -> tuple[Hooks, ...]:
    """The hooks of all parties. Raises TypeError for what is none, as a bare function is."""
    if isinstance(hooks, Hooks) or not isinstance(hooks, Iterable):
        raise TypeError(f"hooks are a list of Hooks, not {type(hooks).__name__}")
    told = tuple(hooks)
    for each in told:
        if not isinstance(each, Hooks):
            name = getattr(each, "__name__", type(each).__name__)
            raise TypeError(
                f"{name} is no Hooks: say where it is asked, as in Hooks(before_call={name})"
            )
    return told
