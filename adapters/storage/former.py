"""Lines written ahead by older versions, whose steps and calls were entries of their own kinds.

They are read as the facts they are now, so that an upgrade over a crash loses no step.
"""

from __future__ import annotations

from typing import ClassVar, Literal, TypeAlias

from msgspec import Struct

from bot.domain.chat import (
    AssistantMessage,
    Completion,
    FinishReason,
    ToolCall,
    ToolMessage,
    Usage,
)
from bot.domain.run import StepFinished, ToolFinished, ToolStarted


class StepTaken(Struct, frozen=True, kw_only=True, tag="step_taken"):
    """A step; its `at` is when the line was put."""

    turn_id: str
    step: int
    message: AssistantMessage
    finish: FinishReason
    model: str
    seconds: float
    usage: Usage | None = None
    type: ClassVar[Literal["step_taken"]] = "step_taken"

    def fact(self) -> StepFinished:
        completion = Completion(self.message, self.finish, self.usage, model=self.model)
        return StepFinished(
            run_id=self.turn_id, step=self.step, completion=completion, seconds=self.seconds
        )


class CallStarted(Struct, frozen=True, kw_only=True, tag="call_started"):
    """A call began."""

    turn_id: str
    step: int
    call_id: str
    name: str
    type: ClassVar[Literal["call_started"]] = "call_started"

    def fact(self) -> ToolStarted:
        return ToolStarted(
            run_id=self.turn_id, step=self.step, call=ToolCall(self.call_id, self.name, "")
        )


class CallFinished(Struct, frozen=True, kw_only=True, tag="call_finished"):
    """A call had its result."""

    turn_id: str
    step: int
    result: ToolMessage
    code: str
    seconds: float
    type: ClassVar[Literal["call_finished"]] = "call_finished"

    def fact(self) -> ToolFinished:
        result = self.result
        return ToolFinished(
            run_id=self.turn_id,
            step=self.step,
            call=ToolCall(result.call_id, result.name, ""),
            result=result,
            code=self.code,
            seconds=self.seconds,
        )


Former: TypeAlias = StepTaken | CallStarted | CallFinished
