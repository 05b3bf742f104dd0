"""Document 004, pagantic: availability, the loop's limit, programs."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import pytest

from frostagent import (
    Agent,
    Hook,
    RunFailed,
    ScriptedModel,
    StepLimitReached,
    Stop,
    SystemClock,
    ToolFailed,
    Toolset,
    ToolType,
    call,
    class_tool,
    command_tool,
    foreign_tool,
    tool,
)
from frostagent.types.runs import RunFinished
from tests.cases import each_case
from tests.conformance.dice import TWO_DICE, DiceTool
from tests.conformance.weather import Told, echo, result_of, results

# --- tool and registry --------------------------------------------------------------------------------


async def test_a_tool_is_info_definition_execute_and_available() -> None:
    dice = class_tool(DiceTool())
    assert dice.spec.name == "roll_dice"
    assert dice.spec.description == "Roll dice. Returns sum and individual results."
    assert dice.spec.parameters["required"] == ["count", "sides"]
    registry = Toolset([dice], clock=SystemClock())
    assert (await registry.execute("roll_dice", {"count": 2, "sides": 6})).content == "Rolled 2d6"


async def test_integers_arrive_as_integers_whatever_json_made_of_them() -> None:
    registry = Toolset([class_tool(DiceTool())], clock=SystemClock())
    assert (await registry.execute("roll_dice", {"count": 2.0, "sides": 6.0})).content == "Rolled 2d6"


async def test_what_execute_refuses_is_an_error_with_its_words() -> None:
    registry = Toolset([class_tool(DiceTool())], clock=SystemClock())
    result = await registry.execute("roll_dice", {"count": 11, "sides": 6})
    assert result.content == "error: count must be 1-10, got 11 [TOOL_EXECUTION_FAILED]"


async def test_the_type_is_metadata_function_or_external_program() -> None:
    listed = command_tool("list_files", "Lists.", ["ls"])
    told = {}
    for kind in ("go", "function", "cli", ""):
        registry = Toolset([DiceTool(kind), listed])
        dice, files = registry.check_availability()[::-1]
        assert (files.name, files.type) == ("list_files", ToolType.CLI)
        assert dice.description == "Rolls N dice with S sides each"
        result = await registry.execute("roll_dice", {"count": 2, "sides": 6})
        told[kind] = (str(dice.type), result, registry.definitions()[1])
    assert {kind: shown for kind, (shown, _, _) in told.items()} == {
        "go": "go",
        "function": "function",
        "cli": "cli",
        "": "function",
    }
    assert len({result.content for _, result, _ in told.values()}) == 1
    assert all(spec == told["go"][2] for _, _, spec in told.values())


@each_case("name", ["RollDice", "roll-dice", "1dice", "", "掷骰子"])
def test_names_are_snake_case(name: str) -> None:
    with pytest.raises(ValueError, match="name"):
        tool(name=name or " ")(DiceTool().execute)


def test_definitions_are_those_of_available_tools_and_all_definitions_of_all() -> None:
    source = DiceTool()
    registry = Toolset([class_tool(source), echo], clock=SystemClock())
    assert [spec.name for spec in registry.definitions()] == ["echo", "roll_dice"]
    source.reason = "the dice are lost"
    assert [spec.name for spec in registry.definitions()] == ["echo"]
    assert [spec.name for spec in registry.all_definitions()] == ["echo", "roll_dice"]


def test_check_availability_has_every_tool_sorted_with_its_reason() -> None:
    source = DiceTool()
    source.reason = "the dice are lost"
    registry = Toolset([class_tool(source), echo], clock=SystemClock())
    statuses = [(each.name, each.available, each.reason) for each in registry.check_availability()]
    assert statuses == [("echo", True, ""), ("roll_dice", False, "the dice are lost")]


def test_all_tools_are_listed_sorted_by_name() -> None:
    registry = Toolset([class_tool(DiceTool()), echo], clock=SystemClock())
    assert [each.name for each in registry.list()] == ["echo", "roll_dice"]


async def test_all_executions_go_through_one_point_the_hooks_see_each() -> None:
    seen: list[str] = []
    hooks = Hook(before_call=lambda event: seen.append(event.name))
    registry = Toolset([class_tool(DiceTool())], clock=SystemClock(), hooks=[hooks])
    execute = registry.get_executor("roll_dice")
    assert execute is not None
    await registry.execute("roll_dice", {"count": 1, "sides": 6})
    await execute({"count": 1, "sides": 6})
    with ScriptedModel(TWO_DICE, "done") as model:
        await Agent(model=model, tools=registry).chat("go")
    assert seen == ["roll_dice"] * 3


# --- the loop -----------------------------------------------------------------------------------------


async def test_the_loop_goes_on_until_the_model_answers_in_text() -> None:
    with ScriptedModel(TWO_DICE, "You rolled 2d6.") as model:
        reply = await Agent(model=model, tools=[DiceTool()]).chat("Roll 2d6")
    assert reply.text == "You rolled 2d6."
    assert results(reply)[0].content == "Rolled 2d6"


async def test_several_calls_of_one_answer_are_all_executed_before_the_next_inference() -> None:
    with ScriptedModel([TWO_DICE, call("roll_dice", count=1, sides=20)], "done") as model:
        await Agent(model=model, tools=[DiceTool()]).chat("go")
    assert [message.content for message in model.requests[1].messages if message.type == "tool"] == [
        "Rolled 2d6",
        "Rolled 1d20",
    ]


@each_case("max_steps", [0, 20])
async def test_the_default_limit_is_20_and_0_means_the_default(max_steps: int) -> None:
    steps = [call("roll_dice", count=1, sides=number + 1) for number in range(20)]
    model = ScriptedModel(*steps)
    agent = Agent(model=model, tools=[DiceTool()], max_steps=max_steps, on_limit="error")
    with model, pytest.raises(StepLimitReached):
        await agent.chat("go")


async def test_beyond_the_limit_there_is_an_error() -> None:
    model = ScriptedModel(TWO_DICE, TWO_DICE)
    agent = Agent(model=model, tools=[DiceTool()], max_steps=2, on_limit="error")
    told = Told(agent)
    with model, pytest.raises(StepLimitReached) as caught:
        await agent.chat("go")
    assert (caught.value.kind, caught.value.reply.limit) == ("limit", True)
    finished = told.events[-1]
    assert isinstance(finished, RunFinished)
    assert finished.limit


async def test_beyond_the_limit_the_model_may_have_to_answer_without_tools_instead() -> None:
    model = ScriptedModel(TWO_DICE, "that is all I know")
    with model:
        reply = await Agent(model=model, tools=[DiceTool()], max_steps=1).chat("go")
    assert (reply.text, reply.limit) == ("that is all I know", True)
    assert model.requests[1].tools == ()


async def test_without_tools_a_request_has_none() -> None:
    with ScriptedModel("hi") as model:
        await Agent(model=model).chat("hi")
    assert model.requests[0].tools == ()


async def test_on_tool_result_is_called_after_each_execution() -> None:
    told: list[tuple[str, str]] = []
    echo_is_told = asyncio.Event()

    def tell(name: str, output: str) -> None:
        told.append((name, output))
        if output == "a":
            echo_is_told.set()

    @tool
    async def wait() -> str:
        """Ends only once the result of the other call of its step is told."""
        await echo_is_told.wait()
        return "waited"

    with ScriptedModel([call("wait"), call("echo", text="a"), call("echo", loud="b")], "done") as model:
        reply = await Agent(model=model, tools=[wait, echo], on_tool_result=tell).chat("go")
    wrong = "error: text: required [TOOL_INVALID_ARGUMENTS]"
    assert told == [("echo", wrong), ("echo", "a"), ("wait", "waited")]
    assert [result.content for result in results(reply)] == ["waited", "a", wrong]


# --- schema -------------------------------------------------------------------------------------------


async def test_the_schema_subset_is_kept_and_enforced_with_defaults_items_and_nesting() -> None:
    schema = {
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "Search query"},
            "max_results": {"type": "integer", "default": 5},
            "tags": {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}},
            "where": {"type": "object", "properties": {"lang": {"type": "string"}}, "required": ["lang"]},
        },
        "required": ["query"],
    }
    got: list[dict[str, Any]] = []
    search = foreign_tool("search_web", "Search the web.", schema, got.append)
    registry = Toolset([search], clock=SystemClock())
    assert search.spec.parameters == schema
    await registry.execute("search_web", {"query": "x", "tags": ["a"], "where": {"lang": "zh"}})
    assert got == [{"query": "x", "max_results": 5, "tags": ["a"], "where": {"lang": "zh"}}]
    result = await registry.execute("search_web", {"query": "x", "tags": ["c"], "where": {}})
    assert "tags.0: " in result.content
    assert "where.lang: required" in result.content


# --- availability -------------------------------------------------------------------------------------


async def test_availability_is_asked_again_at_each_step() -> None:
    source = DiceTool()

    def lose(_event: object) -> None:
        source.reason = "the dice are lost"

    with ScriptedModel(TWO_DICE, "done") as model:
        await Agent(model=model, tools=[source, echo], hooks=[Hook(after_call=lose)]).chat("go")
    assert [[spec.name for spec in request.tools] for request in model.requests] == [["echo", "roll_dice"], ["echo"]]


async def test_a_call_for_a_tool_that_has_become_unavailable_is_still_tried() -> None:
    source = DiceTool()
    source.reason = "the dice are lost"
    with ScriptedModel(TWO_DICE, "done") as model:
        reply = await Agent(model=model, tools=[source]).chat("go")
    assert results(reply)[0].content == "Rolled 2d6"


async def test_a_call_that_cannot_run_any_more_ends_as_unavailable_with_the_reason() -> None:
    source = DiceTool()

    def break_off(_arguments: dict[str, Any]) -> str:
        source.reason = "the dice are lost"
        raise ToolFailed("no dice")

    dice = foreign_tool("roll_dice", "Rolls.", {}, break_off, available=lambda: source.reason)
    with ScriptedModel(call("roll_dice"), "then without") as model:
        reply = await Agent(model=model, tools=[dice, echo]).chat("go")
    assert "the dice are lost" in results(reply)[0].content
    assert results(reply)[0].content.endswith("[TOOL_UNAVAILABLE]")
    assert (reply.text, reply.stop) == ("then without", Stop.ANSWERED)


async def test_a_critical_tool_that_becomes_unavailable_is_reported_to_the_caller() -> None:
    source = DiceTool()
    dice = class_tool(source, critical=True)

    def lose(_event: object) -> None:
        source.reason = "the dice are lost"

    model = ScriptedModel(TWO_DICE)
    with model, pytest.raises(RunFailed, match="roll_dice is critical") as caught:
        await Agent(model=model, tools=[dice], hooks=[Hook(after_call=lose)]).chat("go")
    assert caught.value.kind == "tool"


# --- programs -----------------------------------------------------------------------------------------


async def test_a_cli_tool_wraps_a_program_and_gives_its_output() -> None:
    greet = command_tool(
        "greet",
        "Greets.",
        [sys.executable, "-c", "import sys; print('hello', sys.argv[1])", "{who}"],
        {"properties": {"who": {"type": "string"}}},
    )
    with ScriptedModel(call("greet", who="Ann; rm -rf ~"), "done") as model:
        assert (await result_of(Agent(model=model, tools=[greet]), model)).strip() == "hello Ann; rm -rf ~"


async def test_a_failing_program_is_an_error_with_its_output_and_exit_code() -> None:
    code = "import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)"
    broken = command_tool("break_it", "Breaks.", [sys.executable, "-c", code])
    result = await Toolset([broken], clock=SystemClock()).execute("break_it")
    assert result.is_error
    assert "exit code 3" in result.content
    assert "out" in result.content
    assert "err" in result.content


def test_a_program_that_is_not_in_path_makes_its_tool_unavailable() -> None:
    missing = command_tool("grep_files", "Searches.", ["no-such-program-anywhere"])
    (status,) = Toolset([missing], clock=SystemClock()).check_availability()
    assert not status.available
    assert "not in PATH" in status.reason


async def test_a_value_that_a_program_would_take_for_an_option_is_refused() -> None:
    find = command_tool("find_it", "Finds.", ["grep", "{word}"], {"properties": {"word": {"type": "string"}}})
    result = await Toolset([find], clock=SystemClock()).execute("find_it", {"word": "--help"})
    assert result.content == "error: word: must not begin with - [TOOL_INVALID_ARGUMENTS]"
