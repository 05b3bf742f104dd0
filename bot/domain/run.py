"""What a run tells while it goes, and how it ends."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, TypeAlias

from bot.domain.chat import Completion, Message, ToolCall, ToolMessage, Usage
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _RunEvent:
    run_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStarted(_RunEvent):
    conversation: Conversation
    asker: Asker
    type: Literal["run_started"] = "run_started"


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
class RunFinished(_RunEvent):
    outcome: Outcome
    seconds: float
    type: Literal["run_finished"] = "run_finished"


RunEvent: TypeAlias = RunStarted | StepFinished | ToolStarted | ToolFinished | RunFinished
