"""The observer that writes runs into the journal: each step, the start and the result of each
call.
"""

from __future__ import annotations

from typing import assert_never

from msgspec.structs import replace

from bot.domain.journal import CallFinished, CallStarted, StepTaken
from bot.domain.ports import Clock, Store
from bot.domain.run import (
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
    """Fits `Observer`. How a run began and ended is the turn's own entry; runs inside it are a call
    of it, no more.
    """

    def __init__(self, *, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def notice(self, event: RunEvent) -> None:
        if event.parent:
            return
        match event:
            case StepFinished(completion=completion):
                self._store.put(
                    StepTaken(
                        turn_id=event.run_id,
                        step=event.step,
                        message=completion.message,
                        finish=completion.finish,
                        model=completion.endpoint or completion.model,
                        seconds=event.seconds,
                        at=self._clock.now(),
                        usage=completion.usage,
                    )
                )
            case ToolStarted(call=call):
                self._store.put(
                    CallStarted(
                        turn_id=event.run_id, step=event.step, call_id=call.id, name=call.name
                    )
                )
            case ToolFinished():
                self._store.put(
                    CallFinished(
                        turn_id=event.run_id,
                        step=event.step,
                        # Pictures are megabytes that nobody would read again.
                        result=replace(event.result, images=()),
                        code=event.code,
                        seconds=event.seconds,
                    )
                )
            case RunStarted() | RunContinued() | RunPaused() | RunFinished() | ToolProgressed():
                pass
            case _:
                assert_never(event)
