"""The events of a run, and how it ends or pauses.

A run has segments: the first begins with RunStarted, each later one with RunContinued. Each segment
ends with exactly one RunPaused (it waits for an approval) or RunFinished. Each call has exactly one
ToolStarted and one ToolFinished, however many segments lie between them.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, ClassVar, Literal, TypeAlias

from msgspec import Struct, field

from frostagent.types.errors import ToolFailed
from frostagent.types.messages import (
    AssistantMessage,
    Completion,
    Message,
    ToolCall,
    ToolMessage,
    Usage,
)
from frostagent.types.results import ToolResult
from frostagent.types.traits import Audience


class Asker(Struct, frozen=True):
    """The person on whose authority a run acts.

    `role` is their role in the run's conversation: "owner" and "admin" may call tools for group
    admins. `is_owner` comes from settings, never from a message. `authority` is the lowest of all
    people whose words the question passes on (quoted or forwarded), `overheard` the lowest of those
    who spoke before it; OWNER if there are none. `voices` names some of the people who lower
    either; `read` has the tools that brought in text from outside.

        Asker("10001", name="Ann", role="admin")
    """

    user_id: str
    name: str = ""
    role: str = "unknown"
    is_owner: bool = False
    authority: Audience = Audience.OWNER
    overheard: Audience = Audience.OWNER
    voices: tuple[str, ...] = ()
    read: tuple[str, ...] = ()


class Terms(Struct, frozen=True):
    """The tools that may be called in a conversation, and by whom.

    `denied` tools may not be called at all; `audiences` overrides what a tool declares. `highest`
    caps everyone's authority. Tools of servers in `withheld` do not exist there.
    """

    denied: frozenset[str] = frozenset()
    audiences: Mapping[str, Audience] = field(default_factory=dict)
    highest: Audience = Audience.OWNER
    withheld: frozenset[str] = frozenset()

    def audience(self, name: str, declared: Audience) -> Audience:
        return self.audiences.get(name, declared)


class Stop(StrEnum):
    """How a run ended."""

    ANSWERED = "answered"
    SILENT = "silent"
    STOPPED = "stopped"
    DENIED = "denied"
    FAILED = "failed"
    OUT_OF_BUDGET = "out_of_budget"
    INTERRUPTED = "interrupted"


class ToolFailure(Struct, frozen=True):
    """A failed call of a run: its stable `code`, and the `message` that the model read."""

    call_id: str
    name: str
    code: str
    message: str


class Outcome(Struct, frozen=True):
    """The end of a run: its final text (may be empty) and every message it added, in order.

    `messages` is a valid transcript: each call has exactly one result. `limit` says that the step
    limit was reached; `error` is for the log and the owner.
    """

    stop: Stop
    text: str
    messages: tuple[Message, ...]
    usage: Usage
    steps: int
    limit: bool = False
    error: str = ""

    @property
    def tool_failures(self) -> tuple[ToolFailure, ...]:
        """Every failed call, in order, however the run ended."""
        return tuple(
            ToolFailure(message.call_id, message.name, code_of(message), message.content)
            for message in self.messages
            if isinstance(message, ToolMessage) and message.is_error
        )


def code_of(result: ToolMessage) -> str:
    """The stable word for a result: `ok`, or the code of its failure. Its text does not matter."""
    return result.code or ToolFailed.code if result.is_error else "ok"


class Spent(Struct, frozen=True):
    """The costs of a run, inner runs included: requests, tokens, messages sent by tools."""

    requests: int = 0
    tokens: float = 0.0
    sends: int = 0


class Led(Struct, frozen=True):
    """Influences on a call besides its asker: `people`, and tools that `read` outside text."""

    people: bool = False
    names: tuple[str, ...] = ()
    read: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return self.people or bool(self.read)


class PendingCall(Struct, frozen=True, tag="pending"):
    """A call that waits for an approval.

    `asks` is the question for people. `expires` is in seconds since 1970; the call is denied then.
    `digest` binds the wait to its call, run and asker (`digest_call`). `arguments` are the final
    ones, as JSON: prepared, repaired, with defaults, changed by hooks. `number` is what people
    type, as in `#A3`; 0 until assigned. `since` is when the call began, in seconds since 1970.
    `revision` is that of the tool when asked (`Tool.revision`). In older states, `arguments` is
    empty (use the call's own), `since` is 0, and `led` is text for people.
    """

    call: ToolCall
    asks: str
    expires: float
    digest: str
    arguments: str = ""
    number: int = 0
    since: float = 0.0
    led: Led | str = Led()
    revision: str = ""
    type: ClassVar[Literal["pending"]] = "pending"


class SuspendedRun(Struct, frozen=True, kw_only=True):
    """A paused run, as data: all it needs to continue, even in another process.

    `messages` is what it added to the transcript so far. `message` has the calls of the unfinished
    step, which is not in the transcript yet; `answers` has, for each call in order, its result or
    what it waits for. `steps` and `usage` cover the run so far; `response_id` is the answer that
    made the calls; `spent` is its part of the budget.
    """

    run_id: str
    conversation: str
    asker: Asker
    messages: tuple[Message, ...]
    message: AssistantMessage
    answers: tuple[ToolMessage | PendingCall, ...]
    usage: Usage
    steps: int
    response_id: str = ""
    spent: Spent = Spent()

    @property
    def pending(self) -> tuple[PendingCall, ...]:
        """The waiting calls, in call order; never empty."""
        return tuple(answer for answer in self.answers if isinstance(answer, PendingCall))

    @property
    def expires(self) -> float:
        """When the first wait ends, in seconds since 1970: resume the run then in any case."""
        return min(pending.expires for pending in self.pending)


class _RunEvent(Struct, frozen=True, kw_only=True):
    """`parent` is the run that this one runs inside (for a subagent); else empty."""

    run_id: str
    parent: str = ""


class RunStarted(_RunEvent, frozen=True, kw_only=True, tag="run_started"):
    """A run began."""

    conversation: str
    asker: Asker
    type: ClassVar[Literal["run_started"]] = "run_started"


class RunContinued(_RunEvent, frozen=True, kw_only=True, tag="run_continued"):
    """A suspended run continues, possibly in another process."""

    conversation: str
    asker: Asker
    type: ClassVar[Literal["run_continued"]] = "run_continued"


class StepFinished(_RunEvent, frozen=True, kw_only=True, tag="step_finished"):
    """The model answered. `response_id` is the vendor's or generated; the calls carry it."""

    step: int
    completion: Completion
    seconds: float
    response_id: str = ""
    type: ClassVar[Literal["step_finished"]] = "step_finished"


class ToolStarted(_RunEvent, frozen=True, kw_only=True, tag="tool_started"):
    """The model called a tool `at` that time, in seconds since 1970.

    The body may begin later: see `ToolFinished.began`.
    """

    step: int
    call: ToolCall
    response_id: str = ""
    at: float = 0.0
    type: ClassVar[Literal["tool_started"]] = "tool_started"


class ToolProgressed(_RunEvent, frozen=True, kw_only=True, tag="tool_progressed"):
    """A running call reports progress, as it happens; never after its ToolFinished."""

    step: int
    call: ToolCall
    partial: ToolResult
    response_id: str = ""
    type: ClassVar[Literal["tool_progressed"]] = "tool_progressed"


class ToolFinished(_RunEvent, frozen=True, kw_only=True, tag="tool_finished"):
    """A call has its result. `details` are the tool's, for people, or facts about its failure.

    The body ran from `began` to `ended`, in seconds since 1970, for `seconds`; all are 0 if it
    never ran. The calls of a step are reported together. `waited` is the time in seconds before the
    body began (other calls, a free slot, an approval), or until the call was refused. `exception`
    is what was raised; it is never stored. `arguments` are the final ones, after repairs and hooks;
    None if the call did not get that far. `coerced` lists the repairs.
    """

    step: int
    call: ToolCall
    result: ToolMessage
    code: str
    seconds: float
    waited: float = 0.0
    response_id: str = ""
    details: Any = field(default_factory=dict)
    arguments: Mapping[str, Any] | None = None
    coerced: tuple[str, ...] = ()
    began: float = 0.0
    ended: float = 0.0
    exception: BaseException | None = None
    type: ClassVar[Literal["tool_finished"]] = "tool_finished"


class RunPaused(_RunEvent, frozen=True, kw_only=True, tag="run_paused"):
    """The run waits for an approval: `suspended` is its state. This segment took `seconds`."""

    suspended: SuspendedRun
    seconds: float
    type: ClassVar[Literal["run_paused"]] = "run_paused"


class RunFinished(_RunEvent, frozen=True, kw_only=True, tag="run_finished"):
    """The run is over. Its last segment took `seconds`."""

    outcome: Outcome
    seconds: float
    type: ClassVar[Literal["run_finished"]] = "run_finished"

    @property
    def limit(self) -> bool:
        return self.outcome.limit

    @property
    def tool_failures(self) -> tuple[ToolFailure, ...]:
        return self.outcome.tool_failures


RunEvent: TypeAlias = (
    RunStarted
    | RunContinued
    | StepFinished
    | ToolStarted
    | ToolProgressed
    | ToolFinished
    | RunPaused
    | RunFinished
)
