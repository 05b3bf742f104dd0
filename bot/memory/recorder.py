"""Writes runs into the journal: each step, and the start and result of each call."""

from __future__ import annotations

from typing import Final, assert_never

from msgspec.structs import replace

from bot.core.journal import RequestMade, UsageAdded
from bot.core.ports import Store
from bot.core.task_context import current_run
from frostagent.types.messages import ToolCall, as_kept
from frostagent.types.ports import Clock
from frostagent.types.runs import (
    RunContinued,
    RunEvent,
    RunFinished,
    RunPaused,
    RunStarted,
    StepFinished,
    ToolFinished,
    ToolProgressed,
    ToolStarted,
)


class Recorder:
    """An `Observer`. Start and end of a run are its turn's entries; nested runs keep requests."""

    notices: Final = frozenset({StepFinished, ToolStarted, ToolFinished})

    def __init__(self, *, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def notice(self, event: RunEvent) -> None:
        if event.parent:
            self._count(event)
            return
        match event:
            case StepFinished():
                self._store.put(event)
            case RunStarted() | RunFinished() | RunContinued() | RunPaused() | ToolProgressed():
                pass
            case ToolStarted(call=call):
                self._store.put(replace(event, call=_named(call)))
            case ToolFinished(call=call, result=result):
                # Images are large and never read again; details may be any type.
                kept = replace(as_kept(result), images=())
                self._store.put(
                    replace(
                        event,
                        call=_named(call),
                        result=kept,
                        details={},
                        arguments=None,
                        coerced=(),
                        exception=None,
                    )
                )
            case _:
                assert_never(event)

    def _count(self, event: RunEvent) -> None:
        """Journal the request of a nested run and its usage for the turn."""
        if not isinstance(event, StepFinished):
            return
        completion, turn_id, now = event.completion, current_run.get(), self._clock.now()
        model = completion.endpoint or completion.model
        if usage := completion.usage:
            self._store.put(UsageAdded(turn_id=turn_id, model=model, usage=usage, at=now))
        self._store.put(
            RequestMade(
                turn_id=turn_id,
                model=model,
                outcome="ok",
                seconds=event.seconds,
                at=now,
                run=event.run_id,
                step=event.step,
                message=completion.message,
            )
        )


def _named(call: ToolCall) -> ToolCall:
    """Drop the arguments, which the step's entry holds."""
    return ToolCall(call.id, call.name, "")
