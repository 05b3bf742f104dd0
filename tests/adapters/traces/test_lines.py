from __future__ import annotations

import json
from typing import Any

from frostagent.tracing import arguments_of, line_of, stamp
from frostagent.types.messages import AssistantMessage, ToolCall, ToolMessage, Usage
from frostagent.types.results import ToolResult
from frostagent.types.runs import (
    Asker,
    PendingCall,
    RunContinued,
    RunPaused,
    SuspendedRun,
    ToolFinished,
    ToolProgressed,
)
from tests.adapters.traces.scene import run_cancelled, run_scene
from tests.cases import each_case
from tests.fakes import GROUP, ManualClock, RecordingObserver

NOW = 1_700_000_000.25
CALL = ToolCall("c0", "look_up", '{"city": "北京"}')


async def lines(*, content: bool) -> list[dict[str, Any]]:
    observer = RecordingObserver()
    await run_scene(observer, clock=ManualClock(NOW))
    found = [line_of(event, NOW, content=content) for event in observer.events]
    return [line for line in found if line is not None]


async def test_each_line_has_a_time_a_layer_an_action_and_its_run() -> None:
    found = await lines(content=False)
    assert {line["timestamp"] for line in found} == {"2023-11-14T22:13:20.250Z"}
    assert {line["run"] for line in found} == {"t1"}
    assert [(line["layer"], line["action"]) for line in found] == [
        ("run", "start"),
        ("inference", "response"),
        ("tool", "execute_start"),
        ("tool", "execute_start"),
        ("tool", "execute_end"),
        ("tool", "execute_end"),
        ("inference", "response"),
        ("run", "end"),
    ]


async def test_a_reader_can_follow_inference_call_result_and_next_inference() -> None:
    first, second = [line for line in await lines(content=False) if line["layer"] == "inference"]
    tools = [line for line in await lines(content=False) if line["layer"] == "tool"]
    assert {line["response"] for line in tools} == {first["response"]}
    assert first["calls"] == ["c0", "c1"]
    assert [line["call_id"] for line in tools] == ["c0", "c1", "c0", "c1"]
    assert {line["step"] for line in tools} == {first["step"]}
    assert (second["step"], second["calls"]) == (first["step"] + 1, [])
    assert second["response"] != first["response"]


async def test_arguments_results_and_texts_are_there_where_they_are_asked_for() -> None:
    found = await lines(content=True)
    start, _, good, bad = [line for line in found if line["layer"] == "tool"]
    assert start["args"] == good["args"] == {"city": "北京"}
    assert good["result"].startswith("北京: 晴")
    assert (good["error"], good["code"]) == (None, "ok")
    assert bad["error"].startswith("error: the tool broke (RuntimeError)")
    assert found[-1]["text"] == "北京晴。"


async def test_without_content_nothing_that_was_said_is_in_any_line() -> None:
    text = json.dumps(await lines(content=False), ensure_ascii=False)
    assert not [word for word in ("北京", "晴", "private words", "天气") if word in text]
    bad = [line for line in await lines(content=False) if line["layer"] == "tool"][-1]
    assert (bad["error"], bad["args"], bad["result"]) == ("TOOL_EXECUTION_FAILED", None, None)


async def test_the_end_says_what_the_run_took_and_which_calls_failed() -> None:
    end = (await lines(content=False))[-1]
    assert (end["outcome"], end["steps"], end["limit"], end["error"]) == ("answered", 2, False, None)
    assert (end["prompt"], end["completion"], end["cost"]) == (20, 10, None)
    assert end["tool_failures"] == [{"call_id": "c1", "name": "fail", "code": "TOOL_EXECUTION_FAILED"}]
    assert end["duration_ms"] >= 0


async def test_a_call_that_was_cancelled_says_so() -> None:
    observer = RecordingObserver()
    await run_cancelled(observer)
    found = [line for event in observer.events if (line := line_of(event, NOW, content=False))]
    assert [line["action"] for line in found if line["layer"] == "tool"] == ["execute_start", "execute_cancelled"]
    assert found[-1]["outcome"] == "stopped"


def test_a_run_that_waits_says_what_for_and_one_that_goes_on_says_so() -> None:
    pending = PendingCall(CALL, "may it?", NOW, "digest")
    suspended = SuspendedRun(
        run_id="t1",
        conversation=str(GROUP),
        asker=Asker("777"),
        messages=(),
        message=AssistantMessage(tool_calls=(CALL,)),
        answers=(pending,),
        usage=Usage(),
        steps=1,
    )
    paused = line_of(RunPaused(run_id="t1", suspended=suspended, seconds=0.5), NOW, content=True)
    assert paused is not None
    assert (paused["action"], paused["waiting"], paused["duration_ms"]) == ("pause", ["c0"], 500.0)
    resumed = line_of(RunContinued(run_id="t1", conversation=str(GROUP), asker=Asker("777")), NOW, content=True)
    assert resumed is not None
    assert (resumed["action"], resumed["conversation"]) == ("continue", "10001:group:4242")


def test_progress_has_no_line() -> None:
    event = ToolProgressed(run_id="t1", step=1, call=CALL, partial=ToolResult("half"))
    assert line_of(event, NOW, content=True) is None


@each_case(
    ("raw", "read"),
    [('{"a": 1}', {"a": 1}), ("", {}), ("[1]", "[1]"), ("no json", "no json"), ("[" * 9999, "[" * 9999)],
)
def test_arguments_that_are_no_object_stay_as_they_came(raw: str, read: object) -> None:
    assert arguments_of(ToolCall("c0", "look_up", raw)) == read


def test_a_moment_is_told_in_utc() -> None:
    assert stamp(0) == "1970-01-01T00:00:00.000Z"


def test_a_run_inside_another_one_names_it_in_each_line() -> None:
    event = RunContinued(run_id="t1/1/c0", parent="t1", conversation=str(GROUP), asker=Asker("1"))
    line = line_of(event, NOW, content=False)
    assert line is not None
    assert (line["run"], line["parent"]) == ("t1/1/c0", "t1")


@each_case(
    ("code", "content", "action"),
    [
        ("TOOL_CANCELLED", "error: broken off", "execute_cancelled"),
        ("TOOL_EXECUTION_FAILED", "error: the call was cancelled by the bank. [TOOL_CANCELLED]", "execute_end"),
    ],
)
def test_whether_a_call_was_cancelled_says_its_code_alone(code: str, content: str, action: str) -> None:
    call = ToolCall("c0", "pay", "{}")
    result = ToolMessage("c0", "pay", content, is_error=True)
    event = ToolFinished(run_id="t1", step=1, call=call, result=result, code=code, seconds=0.5, waited=2.25)
    line = line_of(event, 0.0, content=False)
    assert line is not None
    assert (line["action"], line["duration_ms"], line["waited_ms"]) == (action, 500.0, 2250.0)
