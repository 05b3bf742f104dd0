"""Spans without being asked for, counters, lines of JSON, and when a call really began and ended."""

from __future__ import annotations

import asyncio
import io
import json
import subprocess
import sys
from collections.abc import Iterator

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from frostagent import Agent, AssistantMessage, Completion, FinishReason, ScriptedModel, Toolset, Usage, call, tool
from frostagent.tracing import JsonLines, Metrics, SpanObserver
from tests.cases import each_case
from tests.conformance.weather import Told
from tests.frostagent.toolbox import add, crash

USED = Completion(AssistantMessage("done"), FinishReason.STOP, usage=Usage(prompt=10, completion=5, cached=4))


@tool(side_effects="none")
async def wait(seconds: float) -> str:
    """Waits."""
    await asyncio.sleep(seconds)
    return "waited"


@pytest.fixture
def exporter(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    """The spans of the process, whose tracer provider somebody has set."""
    kept = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(kept))
    monkeypatch.setattr("frostagent.tracing.get_tracer_provider", lambda: provider)
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", provider)
    yield kept
    provider.shutdown()


@pytest.mark.parametrize("given", [False, True])
async def test_an_agent_makes_spans_wherever_a_tracer_provider_is_set(
    exporter: InMemorySpanExporter, *, given: bool
) -> None:
    with ScriptedModel([call("add", a=1), call("crash")], "done") as model:
        observer = SpanObserver() if given else None
        await Agent(model=model, tools=[add, crash], observer=observer).run("go")
    spans = exporter.get_finished_spans()
    assert sorted(span.name for span in spans) == ["chat", "chat", "run", "tool.execute", "tool.execute"]
    (run,) = [span for span in spans if span.name == "run"]
    assert run.context is not None
    assert {span.parent.span_id for span in spans if span.parent is not None} == {run.context.span_id}
    assert [(span.attributes or {}).get("genai.tool.name") for span in spans if span.name == "tool.execute"] == [
        "add",
        "crash",
    ]


async def test_a_helper_s_run_is_inside_the_run_that_asks_it(exporter: InMemorySpanExporter) -> None:
    with ScriptedModel("It is 2.") as inner, ScriptedModel(call("ask", task="1 + 1"), "done") as model:
        helper = Agent(model=inner, name="Counter").as_tool("ask", "Counts.")
        await Agent(model=model, tools=[helper]).run("go")
    first, second = [span for span in exporter.get_finished_spans() if span.name == "run"]
    assert first.parent is not None
    assert second.context is not None
    assert (first.parent.span_id, second.parent) == (second.context.span_id, None)


async def test_a_call_by_name_is_a_span_of_its_own(exporter: InMemorySpanExporter) -> None:
    await Toolset([add], observer=SpanObserver()).execute("add", {"a": 1})
    (span,) = exporter.get_finished_spans()
    assert (span.name, span.parent) == ("tool.execute", None)


def test_a_program_that_has_no_spans_does_not_load_them() -> None:
    code = """
import asyncio, sys
from frostagent import Agent, ScriptedModel
asyncio.run(Agent(model=ScriptedModel("hi")).run("go"))
print([name for name in sys.modules if name.startswith("opentelemetry")])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=50)
    assert (done.stdout, done.stderr) == ("[]\n", "")


# --- counters and lines ---------------------------------------------------------------------------


async def test_counters_add_up_over_runs() -> None:
    metrics = Metrics()
    with ScriptedModel([call("add", a=1), call("crash")], USED, call("add", a=1), USED) as model:
        agent = Agent(model=model, tools=[add, crash], observer=metrics)
        await agent.run("go")
        await agent.run("go on")
    told = metrics.snapshot()
    seconds = told.pop("seconds")
    assert told == {
        "runs": {"answered": 2},
        "requests": 4,
        "unreported": 2,
        "tokens": {"prompt": 20, "completion": 10, "cached": 8},
        "calls": {"add/ok": 2, "crash/TOOL_EXECUTION_FAILED": 1},
        "tool_error": {"crash": 1},
    }
    assert (set(seconds), json.loads(json.dumps(told))) == ({"add", "crash"}, told)


@each_case("content", [False, True])
async def test_each_event_is_a_line_of_json(*, content: bool) -> None:
    file = io.StringIO()
    with ScriptedModel(call("add", a=41), "done") as model:
        await Agent(model=model, tools=[add], observer=JsonLines(file, content=content)).run("go")
    lines = [json.loads(line) for line in file.getvalue().splitlines()]
    assert [f"{line['layer']}.{line['action']}" for line in lines] == [
        "run.start",
        "inference.response",
        "tool.execute_start",
        "tool.execute_end",
        "inference.response",
        "run.end",
    ]
    assert (lines[3]["result"], lines[3]["args"]) == (("42", {"a": 41, "b": 1}) if content else (None, None))


async def test_a_file_that_cannot_be_written_harms_no_run(caplog: pytest.LogCaptureFixture) -> None:
    file = io.StringIO()
    file.close()
    with ScriptedModel("done") as model:
        assert (await Agent(model=model, observer=JsonLines(file)).run("go")).output == "done"
    assert "cannot be written" in caplog.text


# --- the time of each call ------------------------------------------------------------------------


@each_case("execution", ["concurrent", "sequential"])
async def test_each_call_tells_when_its_own_body_began_and_ended(execution: str) -> None:
    file = io.StringIO()
    with ScriptedModel([call("wait", seconds=0.02), call("wait", seconds=0.1), call("wait")], "done") as model:
        lines = JsonLines(file)
        agent = Agent(model=model, tools=[wait.replace(execution=execution)], observer=lines)
        told = Told(agent)
        await agent.run("go")
    short, long, refused = told.finished
    for event, least in ((short, 0.02), (long, 0.1)):
        assert least * 0.9 <= event.ended - event.began == pytest.approx(event.seconds, abs=1e-4)
    assert short.ended < long.ended
    assert (refused.began, refused.ended, refused.seconds) == (0.0, 0.0, 0.0)
    if execution == "sequential":
        assert long.began >= short.ended - 0.001
    else:
        assert long.began < short.ended
    starts = [event for event in told.events if event.type == "tool_started"]
    assert all(0 < event.at <= short.began + 0.001 for event in starts)
    ends = [line for line in map(json.loads, file.getvalue().splitlines()) if line["action"] == "execute_end"]
    assert ends[0]["began"] <= ends[0]["timestamp"] < ends[1]["timestamp"]
    assert ends[2]["began"] is None
