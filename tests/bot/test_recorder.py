from __future__ import annotations

from bot.domain.chat import ToolCall, ToolMessage
from bot.domain.journal import CallFinished, CallStarted, StepTaken
from bot.domain.run import Asker, RunStarted, StepFinished, ToolFinished, ToolStarted
from bot.recorder import Recorder
from tests.fakes import GROUP, ManualClock, RecordingStore, words


def test_steps_and_calls_become_entries_and_nothing_else_does() -> None:
    store, clock = RecordingStore(), ManualClock()
    recorder = Recorder(store=store, clock=clock)
    call, result = ToolCall("c0", "echo", "{}"), ToolMessage("c0", "echo", "hi")
    completion = words("hello")
    recorder.notice(RunStarted(run_id="t1", conversation=GROUP, asker=Asker(1)))
    recorder.notice(StepFinished(run_id="t1", step=1, completion=completion, seconds=0.5))
    recorder.notice(ToolStarted(run_id="t1", step=1, call=call))
    recorder.notice(ToolFinished(run_id="t1", step=1, call=call, result=result, code="ok", seconds=0.1))
    assert store.entries == [
        StepTaken(
            turn_id="t1",
            step=1,
            message=completion.message,
            finish="stop",
            model="",
            seconds=0.5,
            at=clock.now(),
            usage=completion.usage,
        ),
        CallStarted(turn_id="t1", step=1, call_id="c0", name="echo"),
        CallFinished(turn_id="t1", step=1, result=result, code="ok", seconds=0.1),
    ]
