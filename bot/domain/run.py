"""What a run tells while it goes, and how it ends, or waits.

A run goes in segments: the first begins with RunStarted, each later one with RunContinued; each segment ends with
exactly one RunPaused (it waits for somebody's word) or RunFinished (it is over). A call is told started once and
finished once, whatever number of segments lies between.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, TypeAlias

from bot.domain.chat import AssistantMessage, Completion, Message, ToolCall, ToolMessage, Usage
from bot.domain.events import Conversation


@dataclass(frozen=True, slots=True)
class Asker:
    """On whose authority a run acts. `is_owner` comes from settings, never from what somebody says."""

    user_id: int
    name: str = ""
    role: str = "unknown"
    is_owner: bool = False


class Stop(StrEnum):
    """How a run ended. Exactly one."""

    ANSWERED = "answered"
    SILENT = "silent"
    STOPPED = "stopped"
    DENIED = "denied"
    FAILED = "failed"
    OUT_OF_BUDGET = "out_of_budget"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of a run: the final words (may be empty), and every message it added to the transcript, in order.

    `messages` is valid as it stands: each call has its one result. `limit` says that the step limit was reached;
    `error` is for the log and the owner.
    """

    stop: Stop
    text: str
    messages: tuple[Message, ...]
    usage: Usage
    steps: int
    limit: bool = False
    error: str = ""


@dataclass(frozen=True, slots=True)
class PendingCall:
    """A call that waits for somebody's word.

    `asks` is what is to be decided, for people; `expires` is in seconds since 1970, from then on it is denied; `digest`
    binds the wait to its call, run and asker (`bot/domain/suspension.py`).
    """

    call: ToolCall
    asks: str
    expires: float
    digest: str
    type: Literal["pending"] = "pending"


@dataclass(frozen=True, slots=True, kw_only=True)
class SuspendedRun:
    """A run that waits, as data: all it needs to go on, in another process too.

    `messages` is what it had added to the transcript, valid as it stands; `message` the calls of the unfinished step,
    not part of the transcript yet, and `answers` what has come of them: for each call, in call order, its result or
    what it waits for. `steps` and `usage` are those of the run so far.
    """

    run_id: str
    conversation: Conversation
    asker: Asker
    messages: tuple[Message, ...]
    message: AssistantMessage
    answers: tuple[ToolMessage | PendingCall, ...]
    usage: Usage
    steps: int

    @property
    def pending(self) -> tuple[PendingCall, ...]:
        """What waits, in call order; never empty."""
        return tuple(answer for answer in self.answers if isinstance(answer, PendingCall))

    @property
    def expires(self) -> float:
        """When the first of its waits ends, in seconds since 1970: resume it then, whatever has been decided."""
        return min(pending.expires for pending in self.pending)


@dataclass(frozen=True, slots=True, kw_only=True)
class _RunEvent:
    run_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStarted(_RunEvent):
    conversation: Conversation
    asker: Asker
    type: Literal["run_started"] = "run_started"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunContinued(_RunEvent):
    conversation: Conversation
    asker: Asker
    type: Literal["run_continued"] = "run_continued"


@dataclass(frozen=True, slots=True, kw_only=True)
class StepFinished(_RunEvent):
    step: int
    completion: Completion
    seconds: float
    type: Literal["step_finished"] = "step_finished"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolStarted(_RunEvent):
    step: int
    call: ToolCall
    type: Literal["tool_started"] = "tool_started"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolFinished(_RunEvent):
    step: int
    call: ToolCall
    result: ToolMessage
    code: str
    seconds: float
    type: Literal["tool_finished"] = "tool_finished"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPaused(_RunEvent):
    suspended: SuspendedRun
    seconds: float
    type: Literal["run_paused"] = "run_paused"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFinished(_RunEvent):
    outcome: Outcome
    seconds: float
    type: Literal["run_finished"] = "run_finished"


RunEvent: TypeAlias = RunStarted | RunContinued | StepFinished | ToolStarted | ToolFinished | RunPaused | RunFinished
