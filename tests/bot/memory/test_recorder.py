from __future__ import annotations

from msgspec.structs import replace

from bot.domain.chat import ToolCall, ToolMessage
from bot.domain.journal import CallFinished, CallStarted, StepTaken
from bot.domain.result import ToolResult
from bot.domain.run import Asker, RunStarted, StepFinished, ToolFinished, ToolProgressed, ToolStarted
from bot.memory.recorder import Recorder
from tests.fakes import GROUP, ManualClock, RecordingStore, words


def test_steps_and_calls_become_entries_and_nothing_else_does() -> None:
    store, clock = RecordingStore(), ManualClock()
    recorder = Recorder(store=store, clock=clock)
    call, result = ToolCall("c0", "echo", "{}"), ToolMessage("c0", "echo", "hi")
    seen = ToolMessage("c0", "echo", "hi", images=("data:image/png;base64,x",))
    completion = words("hello")
    recorder.notice(RunStarted(run_id="t1", conversation=GROUP, asker=Asker(1)))
    recorder.notice(StepFinished(run_id="t1", step=1, completion=completion, seconds=0.5))
    recorder.notice(ToolStarted(run_id="t1", step=1, call=call))
    recorder.notice(ToolProgressed(run_id="t1", step=1, call=call, partial=ToolResult("half")))
    recorder.notice(ToolFinished(run_id="t1", step=1, call=call, result=seen, code="ok", seconds=0.1))
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


def test_a_step_is_written_down_under_who_answered() -> None:
    store = RecordingStore()
    recorder = Recorder(store=store, clock=ManualClock())
    for endpoint in ("m@a.test", ""):
        completion = replace(words("hello"), model="m-2024", endpoint=endpoint)
        recorder.notice(StepFinished(run_id="t1", step=1, completion=completion, seconds=0.5))
    assert [entry.model for entry in store.entries if isinstance(entry, StepTaken)] == ["m@a.test", "m-2024"]


def test_a_run_inside_another_one_leaves_no_entries() -> None:
    store = RecordingStore()
    recorder = Recorder(store=store, clock=ManualClock())
    recorder.notice(StepFinished(run_id="t1/1/c0", parent="t1", step=1, completion=words("hi"), seconds=0.5))
    assert store.entries == []
