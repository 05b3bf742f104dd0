from __future__ import annotations

from collections.abc import Iterator

import pytest
from msgspec import structs
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from adapters.traces.spans import TurnSpans
from bot.core.journal import TurnClosed, Undelivered
from frostagent import tracing
from frostagent.engine.engine import RunState
from frostagent.types.errors import ModelAuth
from frostagent.types.messages import AssistantMessage, ToolCall, ToolMessage, Usage
from frostagent.types.runs import (
    Asker,
    Outcome,
    PendingCall,
    RunContinued,
    RunFinished,
    RunPaused,
    RunStarted,
    Stop,
    SuspendedRun,
    ToolFinished,
    ToolStarted,
)
from tests.adapters.traces.scene import a_run, engine, run_cancelled, run_scene
from tests.fakes import GROUP, ManualClock, ScriptedModel

CALL = ToolCall("c0", "look_up", "{}")


class Bench:
    """An observer whose spans a test can read."""

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        self.provider = TracerProvider(shutdown_on_exit=False)
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.clock = ManualClock(1000.0)
        self.observer = TurnSpans(clock=self.clock, provider=self.provider)

    def named(self, name: str) -> list[ReadableSpan]:
        return [span for span in self.exporter.get_finished_spans() if span.name == name]

    def start(self) -> None:
        self.observer.notice(RunStarted(run_id="t1", conversation=str(GROUP), asker=Asker("777")))

    def finish_call(self, *, seconds: float = 0.5, began: float = 0.0) -> None:
        result = ToolMessage("c0", "look_up", "fine")
        self.observer.notice(
            ToolFinished(
                run_id="t1",
                step=1,
                call=CALL,
                result=result,
                code="ok",
                seconds=seconds,
                response_id="r1",
                began=began,
                ended=began and began + seconds,
            )
        )

    def finish(self, stop: Stop = Stop.ANSWERED, error: str = "") -> None:
        outcome = Outcome(stop, "", (), Usage(), 1, error=error)
        self.observer.notice(RunFinished(run_id="t1", outcome=outcome, seconds=1.0))


@pytest.fixture
def bench() -> Iterator[Bench]:
    made = Bench()
    yield made
    made.provider.shutdown()


async def test_each_call_is_a_span_tool_execute_inside_the_span_of_its_run(bench: Bench) -> None:
    await run_scene(bench.observer, clock=bench.clock)
    (run,) = bench.named("run")
    good, bad = bench.named("tool.execute")
    assert run.parent is None
    for span in (good, bad, *bench.named("chat")):
        assert span.parent is not None
        assert span.context is not None
        assert run.context is not None
        assert span.parent.span_id == run.context.span_id
        assert span.context.trace_id == run.context.trace_id
    assert run.attributes is not None
    assert run.attributes["frostagent.run"] == "t1"
    assert run.attributes["frostagent.outcome"] == "answered"


async def test_a_call_has_its_name_under_both_names_and_an_error_its_code(bench: Bench) -> None:
    await run_scene(bench.observer, clock=bench.clock)
    good, bad = bench.named("tool.execute")
    assert good.attributes is not None
    assert bad.attributes is not None
    assert good.attributes["genai.tool.name"] == good.attributes["gen_ai.tool.name"] == "look_up"
    assert good.status.status_code is StatusCode.UNSET
    assert "error.type" not in good.attributes
    assert bad.attributes["error.type"] == "TOOL_EXECUTION_FAILED"
    assert (bad.status.status_code, bad.status.description) == (StatusCode.ERROR, "TOOL_EXECUTION_FAILED")


async def test_calls_and_answers_are_joined_by_the_response_id(bench: Bench) -> None:
    await run_scene(bench.observer, clock=bench.clock)
    first, second = (dict(span.attributes or {}) for span in bench.named("chat"))
    made_by = {dict(span.attributes or {})["gen_ai.response.id"] for span in bench.named("tool.execute")}
    assert made_by == {first["gen_ai.response.id"]}
    assert second["gen_ai.response.id"] not in made_by
    assert (first["gen_ai.usage.input_tokens"], first["gen_ai.usage.output_tokens"]) == (10, 5)


async def test_nothing_that_was_said_is_in_a_span(bench: Bench) -> None:
    await run_scene(bench.observer, clock=bench.clock)
    text = "".join(span.to_json() for span in bench.exporter.get_finished_spans())
    assert "\\u5317\\u4eac" not in text
    assert "北京" not in text
    assert "private words" not in text


def test_a_call_lasts_from_its_start_as_long_as_it_took_however_late_it_is_told(bench: Bench) -> None:
    bench.start()
    bench.observer.notice(ToolStarted(run_id="t1", step=1, call=CALL))
    bench.clock.time += 30  # the slowest call of the step
    bench.finish_call(seconds=0.5, began=1000.0)
    bench.finish()
    (call,) = bench.named("tool.execute")
    assert (call.start_time, call.end_time) == (1000 * 10**9, 1000_500_000_000)
    (run,) = bench.named("run")
    assert (run.start_time, run.end_time) == (1000 * 10**9, 1030 * 10**9)
    assert call.attributes is not None
    assert call.attributes["frostagent.latency_ms"] == 500.0


def test_a_run_that_waits_ends_its_span_and_the_call_is_one_span_in_the_later_one(bench: Bench) -> None:
    bench.start()
    bench.observer.notice(ToolStarted(run_id="t1", step=1, call=CALL))
    suspended = SuspendedRun(
        run_id="t1",
        conversation=str(GROUP),
        asker=Asker("777"),
        messages=(),
        message=AssistantMessage(tool_calls=(CALL,)),
        answers=(PendingCall(CALL, "may it?", 2000.0, ""),),
        usage=Usage(),
        steps=1,
    )
    bench.observer.notice(RunPaused(run_id="t1", suspended=suspended, seconds=1.0))
    bench.clock.time += 100
    bench.observer.notice(RunContinued(run_id="t1", conversation=str(GROUP), asker=Asker("777")))
    bench.finish_call()
    bench.finish()
    first, second = bench.named("run")
    assert dict(first.attributes or {})["frostagent.outcome"] == "suspended"
    assert dict(second.attributes or {})["frostagent.resumed"] is True
    (call,) = bench.named("tool.execute")
    assert call.parent is not None
    assert second.context is not None
    assert call.parent.span_id == second.context.span_id
    assert call.start_time == 1099_500_000_000


async def test_a_run_that_failed_says_of_what_kind(bench: Bench) -> None:
    with ScriptedModel(ModelAuth("key sk-1 is wrong")) as model:
        await engine(bench.observer, bench.clock, model).run(a_run(), RunState())
    (run,) = bench.named("run")
    assert (run.status.status_code, run.status.description) == (StatusCode.ERROR, "auth")


async def test_a_cancelled_run_leaves_no_open_span(bench: Bench) -> None:
    await run_cancelled(bench.observer)
    assert len(bench.named("run")) == len(bench.named("tool.execute")) == 1


def test_what_comes_without_the_beginning_of_its_run_is_no_span(bench: Bench) -> None:
    bench.finish_call()
    bench.finish()
    assert bench.exporter.get_finished_spans() == ()


def test_runs_that_never_end_do_not_pile_up(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracing, "MAX_OPEN", 2)
    for number in range(5):
        bench.observer.notice(RunStarted(run_id=f"t{number}", conversation=str(GROUP), asker=Asker("777")))
    assert len(bench.observer._runs) <= 2


async def test_without_an_sdk_nothing_happens_and_nothing_is_kept() -> None:
    observer = TurnSpans(clock=ManualClock())
    observer.notice(RunStarted(run_id="t1", conversation=str(GROUP), asker=Asker("777")))
    assert observer._runs == {}
    await run_scene(observer)


def test_a_run_inside_another_one_is_a_span_inside_its_span(bench: Bench) -> None:
    bench.start()
    bench.observer.notice(RunStarted(run_id="t1/1/c0", parent="t1", conversation=str(GROUP), asker=Asker("777")))
    outcome = Outcome(Stop.ANSWERED, "", (), Usage(), 1)
    bench.observer.notice(RunFinished(run_id="t1/1/c0", parent="t1", outcome=outcome, seconds=1.0))
    bench.finish()
    inner, outer = bench.named("run")
    assert inner.parent is not None
    assert outer.context is not None
    assert inner.parent.span_id == outer.context.span_id


def test_a_call_begins_with_its_body_after_what_it_waited(bench: Bench) -> None:
    bench.start()
    bench.observer.notice(ToolStarted(run_id="t1", step=1, call=CALL))
    bench.clock.time += 30
    result = ToolMessage("c0", "look_up", "fine")
    finished = ToolFinished(
        run_id="t1",
        step=1,
        call=CALL,
        result=result,
        code="ok",
        seconds=0.5,
        waited=4.0,
        began=1004.0,
        ended=1004.5,
    )
    bench.observer.notice(finished)
    (call,) = bench.named("tool.execute")
    assert (call.start_time, call.end_time) == (1004 * 10**9, 1004_500_000_000)
    assert dict(call.attributes or {})["frostagent.waited_ms"] == 4000.0


def test_an_answer_that_did_not_arrive_is_a_span_of_its_run_and_so_is_what_became_of_it_later(bench: Bench) -> None:
    closed = TurnClosed(turn_id="t1", stop=Stop.ANSWERED, round=(), usage=Usage(), steps=1, at=0.0)
    bench.start()
    bench.finish()
    bench.observer.see(structs.replace(closed, undelivered=Undelivered.UNCONFIRMED))
    bench.observer.settled("t1", Undelivered.NOT_DELIVERED)
    bench.observer.settled("t2", Undelivered.NOT_DELIVERED)  # of an earlier process
    (run,) = bench.named("run")
    doubt, loss = bench.named("delivery")
    told = [(span.attributes or {}).get("frostagent.outcome") for span in (run, doubt, loss)]
    assert told == ["answered", "unconfirmed", "not_delivered"]
    assert [span.status.status_code for span in (doubt, loss)] == [StatusCode.UNSET, StatusCode.ERROR]
    assert {span.parent and span.parent.span_id for span in (doubt, loss)} == {run.context and run.context.span_id}


def test_an_answer_that_arrived_has_no_span_of_its_own(bench: Bench) -> None:
    bench.start()
    bench.finish()
    bench.observer.see(TurnClosed(turn_id="t1", stop=Stop.ANSWERED, round=(), usage=Usage(), steps=1, at=0.0))
    bench.observer.settled("t1", Stop.ANSWERED)
    assert bench.named("delivery") == []
