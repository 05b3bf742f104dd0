"""The details that the documents fix together, II: what those see who look on, and what goes over the wire."""

from __future__ import annotations

import asyncio
import json
import stat
from pathlib import Path
from typing import Any

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from prometheus_client import generate_latest

import tools
from adapters.metrics.exposition import registry_of
from adapters.metrics.metrics import Metrics
from adapters.traces.run_log import RunLog
from adapters.traces.spans import TurnSpans
from frostagent import (
    Agent,
    Image,
    ScriptedModel,
    SystemClock,
    ToolContext,
    ToolFailed,
    ToolResult,
    call,
    connect,
    tool,
)
from frostagent.text.masking import Mask
from frostagent.types.runs import ToolProgressed
from tests.conformance.vendor import Body, serving
from tests.conformance.weather import counted, crash, echo, results
from tests.fakes import ManualClock

SEND = next(each for each in tools.discover() if each.name == "send_message")


# --- events and callbacks -----------------------------------------------------------------------------


async def test_progress_on_tool_result_and_the_send_hook_fire_live_and_one_at_a_time() -> None:
    log: list[str] = []
    inside = 0

    @tool
    async def work(context: ToolContext) -> str:
        """Works."""
        context.progress("half")
        return "worked"

    async def send(payload: dict[str, Any]) -> None:
        nonlocal inside
        inside += 1
        assert inside == 1
        await asyncio.sleep(0)
        inside -= 1
        log.append(payload["messages"][0]["text"])

    def say(text: str) -> Any:
        return call("send_message", messages=[{"type": "plain", "text": text}])

    model = ScriptedModel([call("work"), say("one"), say("two")], "done")
    agent = Agent(
        model=model,
        tools=[work, SEND],
        send_hook=send,
        on_tool_result=lambda name, _output: log.append(f"{name} after {len(model.requests)}"),
    )
    agent.subscribe(lambda event: log.append(event.partial.content) if isinstance(event, ToolProgressed) else None)
    with model:
        await agent.chat("go")
    assert log == ["half", "work after 1", "one", "send_message after 1", "two", "send_message after 1"]


async def test_send_hooks_of_runs_side_by_side_are_still_one_at_a_time() -> None:
    inside = most = 0

    async def send(_payload: dict[str, Any]) -> None:
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        await asyncio.sleep(0)
        inside -= 1

    say = call("send_message", messages=[{"type": "plain", "text": "hi"}])
    model = ScriptedModel(say, say, "done", "done")
    agent = Agent(model=model, tools=[SEND], send_hook=send)
    with model:
        await asyncio.gather(agent.chat_with_session("a", "go"), agent.chat_with_session("b", "go"))
    assert most == 1


async def test_an_approver_can_be_set_after_the_agent_is_built() -> None:
    look, ran = counted(permission="require_approval")
    model = ScriptedModel(call("look"), "no", call("look"), "yes")
    agent = Agent(model=model, tools=[look])
    with model:
        assert results(await agent.chat("go"))[0].is_error
        assert ran == []
        agent.set_approval_handler(lambda _name, _arguments: True)
        assert not results(await agent.chat("go"))[0].is_error
    assert ran == [""]


# --- the wire -----------------------------------------------------------------------------------------


async def test_no_tools_means_no_tools_key_in_the_request() -> None:
    async with serving() as vendor, connect(vendor.url, "some-model", "sk-test") as model:
        assert (await Agent(model=model).chat("hi")).text == "hello"
        assert (await Agent(model=model, tools=[echo]).chat("hi")).text == "hello"
    assert "tools" not in vendor.bodies[0]
    assert [each["function"]["name"] for each in vendor.bodies[1]["tools"]] == ["echo"]


async def test_images_of_a_tool_reach_a_vision_model_in_a_user_message_after_the_results() -> None:
    url = "data:image/png;base64,iVBORw0KGgo="

    @tool
    async def draw() -> ToolResult:
        """Draws."""
        return ToolResult("a pixel", images=(Image(url),))

    def answer(body: Body) -> Body:
        if len(body["messages"]) > 1:
            return {"content": "I see."}
        calls = [("c1", "draw", "{}"), ("c2", "echo", '{"text": "hi"}')]
        made = [{"id": i, "type": "function", "function": {"name": n, "arguments": a}} for i, n, a in calls]
        return {"content": None, "tool_calls": made}

    async with serving(answer) as vendor, connect(vendor.url, "some-model") as model:
        assert (await Agent(model=model, tools=[draw, echo]).chat("draw")).text == "I see."
    messages = vendor.bodies[1]["messages"]
    assert [message["role"] for message in messages] == ["user", "assistant", "tool", "tool", "user"]
    assert url not in json.dumps(messages[:4])
    assert {"type": "image_url", "image_url": {"url": url}} in messages[4]["content"]


# --- spans, metrics, lines ----------------------------------------------------------------------------


async def test_each_tool_run_is_a_span_tool_execute_with_both_names_of_the_tool() -> None:
    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    spans = TurnSpans(clock=SystemClock(), provider=provider)
    with ScriptedModel([call("echo", text="hi"), call("crash")], "done") as model:
        await Agent(model=model, tools=[echo, crash], observer=spans).chat("go")
    found = [span for span in exporter.get_finished_spans() if span.name == "tool.execute"]
    names = [
        ((span.attributes or {})["genai.tool.name"], (span.attributes or {})["gen_ai.tool.name"]) for span in found
    ]
    assert names == [("echo", "echo"), ("crash", "crash")]
    assert [span.status.is_ok for span in found] == [True, False]


async def test_latency_and_tool_error_are_metrics() -> None:
    clock = ManualClock()

    @tool(side_effects="write")
    async def work() -> str:
        """Takes two seconds."""
        clock.time += 2
        return "worked"

    metrics = Metrics(tools=["work", "crash"], clock=clock)
    with ScriptedModel([call("work"), call("work"), call("crash")], "done") as model:
        await Agent(model=model, tools=[work, crash], observer=metrics, clock=clock).chat("go")
    text = generate_latest(registry_of(metrics)).decode()
    told = {line for line in text.splitlines() if "tool" in line and "_bucket" not in line and not line.startswith("#")}
    assert told == {
        'frostagent_tool_calls_total{outcome="ok",tool="work"} 2.0',
        'frostagent_tool_calls_total{outcome="execution_failed",tool="crash"} 1.0',
        'frostagent_tool_error_total{code="TOOL_EXECUTION_FAILED",tool="crash"} 1.0',
        'frostagent_tool_seconds_count{tool="work"} 2.0',
        'frostagent_tool_seconds_sum{tool="work"} 4.0',
        'frostagent_tool_seconds_count{tool="crash"} 1.0',
        'frostagent_tool_seconds_sum{tool="crash"} 0.0',
        'frostagent_tool_wait_seconds_count{tool="work"} 2.0',
        'frostagent_tool_wait_seconds_sum{tool="work"} 2.0',
        'frostagent_tool_wait_seconds_count{tool="crash"} 1.0',
        'frostagent_tool_wait_seconds_sum{tool="crash"} 4.0',
    }


async def test_lines_have_timestamp_layer_action_call_id_name_args_duration_and_error(tmp_path: Path) -> None:
    file = tmp_path / "runs.jsonl"
    log = RunLog(file, clock=SystemClock(), mask=Mask(["sk-very-secret"]), content=True)
    with log.writing(), ScriptedModel([call("echo", text="sk-very-secret"), call("crash")], "done") as model:
        await Agent(model=model, tools=[echo, crash], observer=log).chat("go")
    lines = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    of_tools = [line for line in lines if line["layer"] == "tool"]
    assert [line["action"] for line in of_tools] == ["execute_start"] * 2 + ["execute_end"] * 2
    assert {"timestamp", "layer", "action", "call_id", "name", "args"} <= of_tools[0].keys()
    assert of_tools[2]["error"] is None
    assert of_tools[3]["error"].startswith("error: ")
    assert of_tools[3]["duration_ms"] >= 0
    assert of_tools[0]["call_id"] == of_tools[2]["call_id"]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert "sk-very-secret" not in file.read_text("utf-8")


async def test_texts_are_in_the_lines_only_where_that_is_asked_for(tmp_path: Path) -> None:
    file = tmp_path / "runs.jsonl"
    log = RunLog(file, clock=SystemClock(), mask=Mask([]), content=False)
    with log.writing(), ScriptedModel(call("echo", text="hush words"), "hush answer") as model:
        await Agent(model=model, tools=[echo], observer=log).chat("hush question")
    assert "hush" not in file.read_text("utf-8")


async def test_a_cancelled_call_is_a_line_execute_cancelled(tmp_path: Path) -> None:
    began = asyncio.Event()

    @tool
    async def wait() -> str:
        """Waits."""
        began.set()
        await asyncio.Event().wait()
        return ""

    file = tmp_path / "runs.jsonl"
    log = RunLog(file, clock=SystemClock(), mask=Mask([]), content=False)
    with log.writing():
        async with asyncio.TaskGroup() as tasks:
            running = tasks.create_task(Agent(model=ScriptedModel(call("wait")), tools=[wait], observer=log).chat("go"))
            await began.wait()
            running.cancel()
    lines = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    assert [line["code"] for line in lines if line["action"] == "execute_cancelled"] == ["TOOL_CANCELLED"]
    assert "execute_end" not in [line["action"] for line in lines]


@tool
async def ask_bank() -> str:
    """Fails in words that are those of a cancelled call."""
    raise ToolFailed("the call was cancelled by the bank. [TOOL_CANCELLED]")


async def test_a_failure_that_only_reads_like_a_cancelled_call_is_none(tmp_path: Path) -> None:
    file = tmp_path / "runs.jsonl"
    log = RunLog(file, clock=SystemClock(), mask=Mask([]), content=True)
    with log.writing(), ScriptedModel(call("ask_bank"), "done") as model:
        reply = await Agent(model=model, tools=[ask_bank], observer=log).chat("go")
    lines = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    assert [line["code"] for line in lines if line["action"] == "execute_end"] == ["TOOL_EXECUTION_FAILED"]
    assert [failure.code for failure in reply.tool_failures] == ["TOOL_EXECUTION_FAILED"]
