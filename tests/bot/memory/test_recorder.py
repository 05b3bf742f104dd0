from __future__ import annotations

from msgspec.structs import replace

from bot.core.codec import read, write
from bot.core.journal import Entry, RequestMade, UsageAdded
from bot.core.task_context import current_run
from bot.memory.recorder import Recorder
from frostagent.types.messages import ToolCall, ToolMessage
from frostagent.types.results import ToolResult
from frostagent.types.runs import Asker, RunStarted, StepFinished, ToolFinished, ToolProgressed, ToolStarted
from tests.fakes import GROUP, ManualClock, RecordingStore, words


def test_steps_and_calls_are_kept_and_nothing_else_is() -> None:
    store = RecordingStore()
    recorder = Recorder(store=store, clock=ManualClock())
    call, named, result = (
        ToolCall("c0", "echo", '{"x": 1}'),
        ToolCall("c0", "echo", ""),
        ToolMessage("c0", "echo", "hi"),
    )
    step = StepFinished(run_id="t1", step=1, completion=words("hello"), seconds=0.5, response_id="r1")
    recorder.notice(RunStarted(run_id="t1", conversation=str(GROUP), asker=Asker("1")))
    recorder.notice(step)
    recorder.notice(ToolStarted(run_id="t1", step=1, call=call))
    recorder.notice(ToolProgressed(run_id="t1", step=1, call=call, partial=ToolResult("half")))
    recorder.notice(ToolFinished(run_id="t1", step=1, call=call, result=result, code="ok", seconds=0.1))
    assert store.entries == [
        step,
        ToolStarted(run_id="t1", step=1, call=named),
        ToolFinished(run_id="t1", step=1, call=named, result=result, code="ok", seconds=0.1),
    ]


def test_neither_pictures_nor_what_no_codec_can_write_are_kept_of_a_call() -> None:
    store, call = RecordingStore(), ToolCall("c0", "echo", "{}")
    seen = ToolMessage("c0", "echo", "hi and more", images=("data:image/png;base64,x",), kept="hi")
    finished = ToolFinished(
        run_id="t1",
        step=1,
        call=call,
        result=seen,
        code="ok",
        seconds=0.1,
        details={"anything": object()},
        arguments={"x": object()},
        coerced=("x: text -> number",),
        exception=KeyError("private words"),
    )
    Recorder(store=store, clock=ManualClock()).notice(finished)
    (kept,) = store.entries
    assert read(Entry, write(kept)) == kept
    assert isinstance(kept, ToolFinished)
    assert kept.result == ToolMessage("c0", "echo", "hi")


def test_of_a_run_inside_another_one_each_request_is_written_down_and_nothing_else() -> None:
    store, clock = RecordingStore(), ManualClock()
    recorder, said = Recorder(store=store, clock=clock), replace(words("hi"), endpoint="coder@x")
    token = current_run.set("t1")
    try:
        recorder.notice(StepFinished(run_id="t1/1/c0", parent="t1", step=1, completion=said, seconds=0.5))
        call = ToolCall("c1", "echo", "")
        recorder.notice(ToolStarted(run_id="t1/1/c0", parent="t1", step=1, call=call))
    finally:
        current_run.reset(token)
    assert said.usage is not None
    made = RequestMade(
        turn_id="t1",
        model="coder@x",
        outcome="ok",
        seconds=0.5,
        at=clock.now(),
        run="t1/1/c0",
        step=1,
        message=said.message,
    )
    assert store.entries == [UsageAdded(turn_id="t1", model="coder@x", usage=said.usage, at=clock.now()), made]
