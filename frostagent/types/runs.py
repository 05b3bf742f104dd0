"""The events a run tells while it goes, and how it ends, or waits.

A run goes in segments: the first begins with RunStarted, each later one with RunContinued; each
segment ends with exactly one RunPaused (it waits for somebody's word) or RunFinished (it is over).
A call is told started once and finished once, whatever number of segments lies between.
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
    """On whose authority a run acts. `role` is the one in the conversation of the run: "owner" and
    "admin" may call what is for its admins. `is_owner` comes from settings, never from what
    somebody says.

    `authority` is the least of those whose words the question passes on (quoted, forwarded),
    `overheard` the least of those whose talk stands before it; OWNER if nobody's does. `voices` are
    the names of some of both, where they lower it; `read` the tools that brought words from
    outside.
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
    """Who may call what somewhere: tools of `denied` names nobody; one in `audiences` those,
    whatever it declares. Nobody there has more authority than `highest`. Tools of the servers in
    `withheld` do not exist there.
    """

    denied: frozenset[str] = frozenset()
    audiences: Mapping[str, Audience] = field(default_factory=dict)
    highest: Audience = Audience.OWNER
    withheld: frozenset[str] = frozenset()

    def audience(self, name: str, declared: Audience) -> Audience:
        """For whom the tool of this name is there."""
        return self.audiences.get(name, declared)


class Stop(StrEnum):
    """How a run ended. Exactly one."""

    ANSWERED = "answered"
    SILENT = "silent"
    STOPPED = "stopped"
    DENIED = "denied"
    FAILED = "failed"
    OUT_OF_BUDGET = "out_of_budget"
    INTERRUPTED = "interrupted"


class ToolFailure(Struct, frozen=True):
    """A call of a run that failed: which, with which stable code, and what the model read about
    it.
    """

    call_id: str
    name: str
    code: str
    message: str


class Outcome(Struct, frozen=True):
    """The end of a run: the final words (may be empty), and every message it added to the
    transcript, in order.

    `messages` is valid as it stands: each call has its one result. `limit` says that the step limit
    was reached; `error` is for the log and the owner.
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
        """Every call that failed, in order; whatever became of the run."""
        return tuple(
            ToolFailure(message.call_id, message.name, code_of(message), message.content)
            for message in self.messages
            if isinstance(message, ToolMessage) and message.is_error
        )


def code_of(result: ToolMessage) -> str:
    """The stable word a result stands for: `ok`, or that of its failure. What it reads like says
    nothing.
    """
    return result.code or ToolFailed.code if result.is_error else "ok"


class Spent(Struct, frozen=True):
    """The costs of a run and all that ran inside it: requests to models, their tokens, messages
    sent by tools.
    """

    requests: int = 0
    tokens: float = 0.0
    sends: int = 0


class Led(Struct, frozen=True):
    """Whose words stand behind a call beside its asker's: other `people`'s, of whom these `names`
    are known, and what these tools `read`.
    """

    people: bool = False
    names: tuple[str, ...] = ()
    read: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return self.people or bool(self.read)


class PendingCall(Struct, frozen=True, tag="pending"):
    """A call that waits for somebody's word.

    `asks` is what is to be decided, for people; `expires` is in seconds since 1970, from then on it
    is denied; `digest` binds the wait to its call, run and asker (`digest_call`).
    `arguments` are those it will be run with, as JSON: prepared, mended, with their defaults, as
    hooks want them; where empty (an older state), the call's own. `number` is what people call it
    by, as in `#A3`; 0 until it has one. `since` is when the call began, in seconds since 1970; 0 in
    an older state. In an older state `led` is words for people. `revision` is that of the tool it
    was asked about (`Tool.revision`).
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
    """A run that waits, as data: all it needs to go on, in another process too.

    `messages` is what it had added to the transcript, valid as it stands; `message` the calls of
    the unfinished step, not part of the transcript yet, and `answers` what has come of them: for
    each call, in call order, its result or what it waits for. `steps` and `usage` are those of the
    run so far, `response_id` is the answer that made the calls. `spent` is of its budget.
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
        """The calls that wait, in call order; never empty."""
        return tuple(answer for answer in self.answers if isinstance(answer, PendingCall))

    @property
    def expires(self) -> float:
        """When the first of its waits ends, in seconds since 1970: resume it then, whatever has
        been decided.
        """
        return min(pending.expires for pending in self.pending)


class _RunEvent(Struct, frozen=True, kw_only=True):
    """`parent` is the run that this one goes on inside of (a subagent's): empty for a run of its
    own.
    """

    run_id: str
    parent: str = ""


class RunStarted(_RunEvent, frozen=True, kw_only=True, tag="run_started"):
    conversation: str
    asker: Asker
    type: ClassVar[Literal["run_started"]] = "run_started"


class RunContinued(_RunEvent, frozen=True, kw_only=True, tag="run_continued"):
    conversation: str
    asker: Asker
    type: ClassVar[Literal["run_continued"]] = "run_continued"


class StepFinished(_RunEvent, frozen=True, kw_only=True, tag="step_finished"):
    """The model answered. `response_id` is the vendor's, or one made for it: its calls carry the
    same one.
    """

    step: int
    completion: Completion
    seconds: float
    response_id: str = ""
    type: ClassVar[Literal["step_finished"]] = "step_finished"


class ToolStarted(_RunEvent, frozen=True, kw_only=True, tag="tool_started"):
    """The model called a tool. `at` is when, in seconds since 1970; `ToolFinished` says when its
    body began.
    """

    step: int
    call: ToolCall
    response_id: str = ""
    at: float = 0.0
    type: ClassVar[Literal["tool_started"]] = "tool_started"


class ToolProgressed(_RunEvent, frozen=True, kw_only=True, tag="tool_progressed"):
    """A call under way says how far it is; told as it happens, and never after its ToolFinished."""

    step: int
    call: ToolCall
    partial: ToolResult
    response_id: str = ""
    type: ClassVar[Literal["tool_progressed"]] = "tool_progressed"


class ToolFinished(_RunEvent, frozen=True, kw_only=True, tag="tool_finished"):
    """A call has its result. `details` are what the tool tells people only, or what is known of its
    failure.

    The body ran from `began` to `ended`, in seconds since 1970, and took `seconds`; all are 0 if it
    never did. The calls of a step are told finished together, whenever each ended. `waited` is how
    long it waited before that (for calls before it, for a place, for somebody's word), or until it
    was refused. `exception` is what was raised, in this process alone: nothing writes it down.
    `arguments` are those it was run with, after mending and hooks; None where it never came to
    that. `coerced` says what was mended.
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
    suspended: SuspendedRun
    seconds: float
    type: ClassVar[Literal["run_paused"]] = "run_paused"


class RunFinished(_RunEvent, frozen=True, kw_only=True, tag="run_finished"):
    outcome: Outcome
    seconds: float
    type: ClassVar[Literal["run_finished"]] = "run_finished"

    @property
    def limit(self) -> bool:
        """Whether the step limit was reached."""
        return self.outcome.limit

    @property
    def tool_failures(self) -> tuple[ToolFailure, ...]:
        """Every call that failed, in order."""
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
