"""Document 004, pagantic, II: structured output, the safety contract, correlation."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, Field

from frostagent import (
    Agent,
    Hook,
    InMemory,
    RequestEvent,
    ScriptedModel,
    SideEffects,
    SystemClock,
    ToolContext,
    ToolError,
    ToolFailed,
    Toolset,
    UnfitAnswer,
    call,
    class_tool,
    tool,
)
from frostagent.types.runs import StepFinished, ToolFinished, ToolStarted
from tests.conformance.dice import TWO_DICE, DiceTool
from tests.conformance.weather import Told, echo, results
from tests.fakes import ManualClock

# --- two phases ---------------------------------------------------------------------------------------


class Roll(BaseModel):
    """What was rolled."""

    total: int = Field(ge=2, le=12)
    dice: list[int]


async def test_tools_come_first_then_structured_output_without_tools() -> None:
    model = ScriptedModel(TWO_DICE, "Rolled 8.", '{"total": 8, "dice": [3, 5]}')
    with model:
        found = await Agent(model=model, tools=[DiceTool()]).run_structured("Roll 2d6", Roll)
    assert found.value == Roll(total=8, dice=[3, 5])
    assert [bool(request.tools) for request in model.requests] == [True, True, False]
    assert [message.type for message in model.requests[2].messages] == [
        "user",
        "assistant",
        "tool",
        "assistant",
        "user",
    ]
    assert found.reply.steps == 3


async def test_structured_output_is_validated_and_may_be_repaired_once() -> None:
    model = ScriptedModel("Rolled 80.", '{"total": 80, "dice": []}', '{"total": 8, "dice": [3, 5]}')
    with model:
        found = await Agent(model=model).run_structured("Roll 2d6", Roll)
    assert found.value.total == 8
    last = model.requests[2].messages[-1]
    assert last.type == "user"
    assert "total: Input should be less than or equal to 12, got 80" in last.text


async def test_structured_output_that_does_not_fit_twice_is_an_error() -> None:
    model = ScriptedModel("Rolled.", "no JSON", '{"total": 1, "dice": []}')
    with model, pytest.raises(UnfitAnswer, match="total: ") as caught:
        await Agent(model=model).run_structured("Roll 2d6", Roll)
    assert len(caught.value.problems) == 1


async def test_the_schema_of_structured_output_may_be_a_json_schema() -> None:
    schema = {"type": "object", "properties": {"total": {"type": "integer"}}, "required": ["total"]}
    model = ScriptedModel("Rolled.", '{"total": "eight"}', 'Here:\n```json\n{"total": 8}\n```')
    with model:
        found = await Agent(model=model).run_structured("Roll 2d6", schema)
    assert found.value == {"total": 8}


async def test_a_structured_run_is_a_fresh_loop_that_neither_reads_nor_writes_history() -> None:
    memory = InMemory()
    model = ScriptedModel("hello", "Rolled.", '{"total": 8, "dice": []}')
    agent = Agent(model=model, memory=memory)
    with model:
        await agent.chat("hi")
        before = await memory.load("")
        await agent.run_structured("Roll 2d6", Roll)
    assert [message.type for message in model.requests[1].messages] == ["user"]
    assert await memory.load("") == before


# --- safety -------------------------------------------------------------------------------------------


async def test_a_result_carries_call_id_name_content_and_is_error() -> None:
    with ScriptedModel([TWO_DICE, call("roll_dice", count=11, sides=6)], "done") as model:
        reply = await Agent(model=model, tools=[DiceTool()]).chat("go")
    good, bad = results(reply)
    assert (good.name, good.content, good.is_error) == ("roll_dice", "Rolled 2d6", False)
    assert bad.is_error
    assert good.call_id != bad.call_id


def test_each_tool_declares_side_effects_idempotence_and_what_it_requires() -> None:
    dice = class_tool(DiceTool(), side_effects="none", idempotent=True, requires=("network",))
    assert (dice.side_effects, dice.idempotent, dice.requires) == (SideEffects.NONE, True, ("network",))


async def test_what_a_tool_requires_is_held_against_what_is_configured(caplog: pytest.LogCaptureFixture) -> None:
    dice = class_tool(DiceTool(), requires=("network",))
    without, with_it = Toolset([dice]), Toolset([dice], configured=["network"])
    assert without.definitions() == without.definitions() == ()
    assert len(with_it.definitions()) == 1
    reason = "requires network (not configured)"
    assert [status.reason for status in without.check_availability()] == [reason]
    assert [status.reason for status in with_it.check_availability()] == [""]
    assert caplog.messages == [f"tool roll_dice is not offered: it {reason}"]
    assert reason in (await without.execute("roll_dice", {"count": 2, "sides": 6})).content


class Flaky:
    """Fails the first time, in a way that passes."""

    def __init__(self) -> None:
        self.times = 0

    async def look(self) -> str:
        """Looks."""
        self.times += 1
        if self.times == 1:
            raise ToolFailed("busy", transient=True)
        return "found"


async def test_only_idempotent_tools_are_retried() -> None:
    once, twice = Flaky(), Flaky()
    registry = Toolset(
        [
            tool(name="look_once")(once.look),
            tool(name="look_twice", side_effects="read", idempotent=True)(twice.look),
        ],
        clock=ManualClock(),
    )
    assert (await registry.execute("look_once")).is_error
    assert (await registry.execute("look_twice")).content == "found"
    assert (once.times, twice.times) == (1, 2)


async def test_a_failure_that_is_not_retried_may_have_recovery_logic_of_its_own() -> None:
    def recover(_context: ToolContext, _arguments: Mapping[str, Any], error: Exception) -> str:
        return f"instead of {error}"

    flaky = tool(name="look", recover=recover)(Flaky().look)
    assert (await Toolset([flaky], clock=SystemClock()).execute("look")).content == "instead of busy"


async def test_arguments_are_held_against_the_schema_then_against_the_tools_own_check_before_the_body() -> None:
    log: list[str] = []

    def check(_context: ToolContext, arguments: Mapping[str, Any]) -> None:
        log.append("check")
        if not Path(arguments["path"]).exists():
            raise ValueError(f"path: {arguments['path']} does not exist")

    @tool(check=check)
    def read_file(path: str) -> str:
        """Reads."""
        log.append("body")
        return Path(path).read_text("utf-8")

    registry = Toolset([read_file], clock=SystemClock())
    wrong = await registry.execute("read_file", {"path": 3.5, "mode": "x"})
    assert wrong.content.endswith("[TOOL_INVALID_ARGUMENTS]")
    assert log == []
    missing = await registry.execute("read_file", {"path": "no-such-file"})
    assert missing.content == "error: path: no-such-file does not exist [TOOL_INVALID_ARGUMENTS]"
    assert log == ["check"]


async def test_validation_errors_belong_to_the_family_of_execution_failures_and_name_the_fields() -> None:
    result = await Toolset([class_tool(DiceTool())], clock=SystemClock()).execute("roll_dice", {"sides": 6})
    assert result.content.endswith("[TOOL_INVALID_ARGUMENTS]")
    assert result.details == {"family": "TOOL_EXECUTION_FAILED", "fields": ["count: required"]}


async def test_a_sandbox_is_a_wrapper_that_checks_before_the_inner_tool() -> None:
    class Forbidden(ToolError):
        code = "TOOL_DENIED"

    def inside(_context: ToolContext, arguments: Mapping[str, Any]) -> None:
        if not arguments["text"].startswith("/srv/"):
            raise Forbidden("only below /srv")

    registry = Toolset([echo.wrap(inside)], clock=SystemClock())
    assert (await registry.execute("echo", {"text": "/srv/a"})).content == "/srv/a"
    assert (await registry.execute("echo", {"text": "/etc/a"})).content == "error: only below /srv [TOOL_DENIED]"


async def test_a_tool_has_a_rate_limit() -> None:
    clock = ManualClock()
    registry = Toolset([tool(name="look", rate="1/60")(Flaky().look)], clock=clock)
    await registry.execute("look")
    assert (await registry.execute("look")).content.endswith("[TOOL_RATE_LIMITED]")
    await clock.sleep(60)
    assert (await registry.execute("look")).content == "found"


# --- correlation --------------------------------------------------------------------------------------


async def test_a_reader_follows_inference_call_result_and_next_inference() -> None:
    requests: list[RequestEvent] = []
    with ScriptedModel(TWO_DICE, "done") as model:
        agent = Agent(model=model, tools=[DiceTool()], hooks=[Hook(before_request=requests.append)])
        told = Told(agent)
        reply = await agent.chat("go")
    first, started, finished, second = told.events[1:5]
    assert isinstance(first, StepFinished)
    assert isinstance(started, ToolStarted)
    assert isinstance(finished, ToolFinished)
    assert isinstance(second, StepFinished)
    assert first.response_id == started.response_id == finished.response_id != second.response_id
    assert started.call == first.completion.message.tool_calls[0] == finished.call
    assert finished.result.call_id == started.call.id
    assert model.requests[1].messages[-1] == finished.result
    assert {event.run_id for event in told.events} == {reply.run_id} == {event.metadata["run"] for event in requests}
    assert (first.step, finished.step, second.step) == (1, 1, 2)
