"""Document 002, go-agents: a tool with one text input, errors as text, spans and metrics, testing by a script."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from frostagent import Agent, ConfigError, InMemory, ScriptedModel, SystemClock, ToolFailed, Toolset, call, tool
from frostagent.types.messages import SystemMessage, UserMessage
from tests.cases import each_case
from tests.conformance.weather import echo, result_of, results

SCHEMA: dict[str, Any] = {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]}


class EchoTool:
    """The tool of document 002."""

    name = "echo"
    description = "Echoes the input string"
    schema = SCHEMA

    async def execute(self, text: str) -> str:
        return f"ECHO:{text}"


async def test_a_tool_takes_one_text_called_input() -> None:
    model = ScriptedModel(call("echo", input="hi"), "done")
    assert await result_of(Agent(model=model, tools=[EchoTool()]), model) == "ECHO:hi"


async def test_the_schema_of_the_tool_is_what_the_model_is_told() -> None:
    model = ScriptedModel("done")
    with model:
        await Agent(model=model, tools=[EchoTool()]).chat("go")
    assert model.requests[0].tools[0].parameters == SCHEMA


@each_case("raw", ["plain words", '{"other": 1}', '"a text"', "[1, 2]", "{broken"])
async def test_arguments_without_input_pass_as_the_raw_text(raw: str) -> None:
    model = ScriptedModel(call("echo", raw), "done")
    assert await result_of(Agent(model=model, tools=[EchoTool()]), model) == f"ECHO:{raw}"


async def test_a_typed_function_may_take_raw_input_too() -> None:
    @tool(raw_input=True)
    def shout(input: str) -> str:  # noqa: A002  # the name the document gives the one field
        """Shouts."""
        return input.upper()

    registry = Toolset([shout], clock=SystemClock())
    assert (await registry.execute("shout", "what is this")).content == "WHAT IS THIS"


async def test_a_richer_schema_is_passed_on_whole() -> None:
    schema = {
        "type": "object",
        "properties": {
            "input": {"type": "string", "description": "What to look for."},
            "where": {"type": "object", "properties": {"deep": {"type": "array", "items": {"enum": ["a", "b"]}}}},
            "limit": {"type": "integer", "minimum": 1, "default": 5},
        },
        "required": ["input"],
        "additionalProperties": False,
    }
    got: list[dict[str, Any]] = []

    class Search(EchoTool):
        def execute(self, arguments: dict[str, Any]) -> str:  # type: ignore[override]  # more than one text
            got.append(arguments)
            return "found"

    Search.schema = schema
    model = ScriptedModel(call("echo", input="x", where={"deep": ["a"]}), "done")
    assert await result_of(Agent(model=model, tools=[Search()]), model) == "found"
    assert got == [{"input": "x", "where": {"deep": ["a"]}, "limit": 5}]
    assert model.requests[0].tools[0].parameters == schema


async def test_a_registry_system_prompt_memory_and_a_limit_make_an_agent() -> None:
    registry = Toolset([echo], clock=SystemClock())
    memory = InMemory()
    model = ScriptedModel(call("echo", text="1"), call("echo", text="2"), "enough", "again")
    agent = Agent(model=model, tools=registry, system="You are a helpful assistant", memory=memory, max_steps=2)
    with model:
        reply = await agent.chat("go")
        await agent.chat("and now?")
    assert reply.limit
    assert model.requests[0].messages == (SystemMessage("You are a helpful assistant"), UserMessage("go"))
    assert model.requests[3].messages[1] == UserMessage("go")


async def test_memory_is_optional() -> None:
    model = ScriptedModel("one", "two")
    agent = Agent(model=model)
    with model:
        await agent.chat("first")
        await agent.chat("second")
    assert model.requests[1].messages == (UserMessage("second"),)


async def test_errors_are_told_to_the_model_as_error_and_message() -> None:
    @tool
    async def fail() -> str:
        """Fails."""
        raise ToolFailed("the disk is full")

    model = ScriptedModel(call("fail"), "sorry")
    assert await result_of(Agent(model=model, tools=[fail]), model) == (
        "error: the disk is full [TOOL_EXECUTION_FAILED]"
    )


def test_names_are_unique_and_a_second_registration_is_an_error() -> None:
    with pytest.raises(ConfigError, match="tool echo: is registered twice"):
        Agent(model=ScriptedModel(), tools=[EchoTool(), echo])


async def test_time_outs_are_respected() -> None:
    @tool(timeout=0.01)
    async def dawdle() -> str:
        """Never ends."""
        await asyncio.Event().wait()
        return ""

    model = ScriptedModel(call("dawdle"), "too slow")
    result = await result_of(Agent(model=model, tools=[dawdle]), model)
    assert result.startswith("error: dawdle timed out after 0.01 s")
    assert result.endswith("[TOOL_TIMEOUT]")


async def test_a_cancelled_run_cancels_its_tools_and_answers_every_call() -> None:
    began, ended = asyncio.Event(), asyncio.Event()

    @tool
    async def wait() -> str:
        """Waits."""
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return ""

    memory = InMemory()
    agent = Agent(model=ScriptedModel([call("wait"), call("echo", text="a")]), tools=[wait, echo], memory=memory)
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(agent.chat_with_session("s", "go"))
        await began.wait()
        running.cancel()
    assert ended.is_set()
    stored = [message for message in await memory.load("s") if message.type == "tool"]
    assert [(message.name, message.is_error) for message in stored] == [("wait", True), ("echo", False)]


async def test_a_tool_is_unit_tested_by_calling_it_directly() -> None:
    assert await EchoTool().execute("hi") == "ECHO:hi"
    assert await echo("hi") == "hi"


async def test_an_agent_is_tested_by_a_script_of_model_answers() -> None:
    with ScriptedModel(call("echo", input="hi"), "It said hi.") as model:
        reply = await Agent(model=model, tools=[EchoTool()]).chat("say hi")
    assert reply.text == "It said hi."
    assert [result.content for result in results(reply)] == ["ECHO:hi"]


async def test_a_script_that_is_over_or_left_over_fails_loudly() -> None:
    with pytest.raises(AssertionError, match="unexpected model request"):
        await Agent(model=ScriptedModel(call("echo", text="a")), tools=[echo]).chat("go")
    with pytest.raises(AssertionError, match="never asked for"), ScriptedModel("left"):
        pass
