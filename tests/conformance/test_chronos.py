"""Document 000, Chronos: definitions with permissions, a registry, a builder, hooks, approvals."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from frostagent import (
    AfterCall,
    Agent,
    Asker,
    BeforeCall,
    ConfigError,
    Hook,
    Permission,
    ScriptedModel,
    Stop,
    SystemClock,
    ToolContext,
    Toolset,
    call,
    foreign_tool,
)
from frostagent.types.messages import AssistantMessage, SystemMessage, ToolMessage, UserMessage
from tests.cases import each_case
from tests.conformance.weather import WEATHER_PARAMETERS, crash, echo, get_weather, result_of, results, weather_tool

TOKYO = call("get_weather", location="Tokyo")


def test_a_definition_has_name_description_parameters_permission_and_handler() -> None:
    tool = weather_tool(permission="require_approval")
    assert (tool.name, tool.description) == ("get_weather", "Get the current weather for a location")
    assert tool.spec.parameters == WEATHER_PARAMETERS
    assert tool.permission is Permission.REQUIRE_APPROVAL
    assert tool(location="Tokyo") == get_weather({"location": "Tokyo"})


async def test_the_handler_gets_the_arguments_as_a_mapping_and_returns_anything() -> None:
    result = await Toolset([weather_tool()], clock=SystemClock()).execute("get_weather", {"location": "東京"})
    assert result.content == '{"location": "東京", "temp": 22, "unit": "celsius"}'


async def test_allow_executes_immediately() -> None:
    ran: list[dict[str, Any]] = []
    model = ScriptedModel(TOKYO, "22 degrees")
    agent = Agent(model=model, tools=[weather_tool(ran, permission="allow")])
    agent.set_approval_handler(lambda name, _arguments: pytest.fail(f"asked about {name}"))
    assert '"temp": 22' in await result_of(agent, model)
    assert ran == [{"location": "Tokyo"}]


async def test_require_approval_blocks_until_the_handler_returns_true() -> None:
    ran: list[dict[str, Any]] = []
    model = ScriptedModel(TOKYO, "22 degrees")
    agent = Agent(model=model, tools=[weather_tool(ran, permission="require_approval")])
    asked: list[tuple[str, Mapping[str, Any], int]] = []

    async def approve(name: str, arguments: Mapping[str, Any]) -> bool:
        await asyncio.sleep(0)
        asked.append((name, arguments, len(ran)))
        return True

    agent.set_approval_handler(approve)
    assert '"temp": 22' in await result_of(agent, model)
    assert asked == [("get_weather", {"location": "Tokyo"}, 0)]
    assert ran == [{"location": "Tokyo"}]


async def test_the_handler_gets_the_context_of_the_call_and_may_be_set_on_the_registry() -> None:
    asked: list[tuple[ToolContext, str]] = []

    def approve(context: ToolContext, name: str, _arguments: Mapping[str, Any]) -> bool:
        asked.append((context, name))
        return context.asker.user_id == "7"

    registry = Toolset([weather_tool(permission="require_approval")])
    registry.set_approval_handler(approve)
    model = ScriptedModel(TOKYO, "22 degrees", TOKYO, "I may not")
    agent = Agent(model=model, tools=registry)
    with model:
        replies = [await agent.chat("go", asker=Asker(str(user))) for user in (7, 8)]
    assert [results(reply)[0].is_error for reply in replies] == [False, True]
    contexts = [(context.run_id, context.step, context.call_id, name) for context, name in asked]
    assert contexts == [(reply.run_id, 1, results(reply)[0].call_id, "get_weather") for reply in replies]


async def test_a_handler_that_returns_false_denies_the_call() -> None:
    ran: list[dict[str, Any]] = []
    model = ScriptedModel(TOKYO, "I may not")
    agent = Agent(model=model, tools=[weather_tool(ran, permission="require_approval")])
    agent.set_approval_handler(lambda _name, _arguments: False)
    assert (await result_of(agent, model)).endswith("[TOOL_DENIED]")
    assert ran == []


async def test_without_a_handler_a_call_that_needs_one_is_an_error() -> None:
    ran: list[dict[str, Any]] = []
    model = ScriptedModel(TOKYO, "I may not")
    agent = Agent(model=model, tools=[weather_tool(ran, permission="require_approval")])
    result = await result_of(agent, model)
    assert result.startswith("error: ")
    assert result.endswith("[TOOL_DENIED]")
    assert ran == []


async def test_a_handler_that_raises_is_an_error() -> None:
    ran: list[dict[str, Any]] = []
    model = ScriptedModel(TOKYO, "I may not")
    agent = Agent(model=model, tools=[weather_tool(ran, permission="require_approval")])

    def broken(_name: str, _arguments: Mapping[str, Any]) -> bool:
        raise OSError("the screen is gone")

    agent.set_approval_handler(broken)
    assert (await result_of(agent, model)).endswith("[TOOL_DENIED]")
    assert ran == []


async def test_deny_always_blocks_and_the_model_is_not_told_of_the_tool() -> None:
    ran: list[dict[str, Any]] = []
    model = ScriptedModel(TOKYO, "I may not")
    agent = Agent(model=model, tools=[weather_tool(ran, permission="deny"), echo])
    agent.set_approval_handler(lambda _name, _arguments: True)
    assert (await result_of(agent, model)).endswith("[TOOL_DENIED]")
    assert [spec.name for spec in model.requests[0].tools] == ["echo"]
    assert ran == []


async def test_the_registry_registers_lists_and_executes_with_permissions() -> None:
    ran: list[dict[str, Any]] = []
    registry = Toolset()
    registry.register(weather_tool(ran, permission="deny"))
    registry.register(echo)
    assert [tool.name for tool in registry.list()] == ["echo", "get_weather"]
    assert (await registry.execute("echo", {"text": "hi"})).content == "hi"
    assert (await registry.execute("get_weather", {"location": "Tokyo"})).is_error
    assert ran == []


async def test_the_builder_registers_tools_and_builds_an_agent() -> None:
    model = ScriptedModel(TOKYO, "It is 22 degrees in Tokyo.")
    agent = (
        Agent.new("weather-agent")
        .with_model(model)
        .with_system_prompt("You help users with weather information.")
        .add_tool(weather_tool())
        .build()
    )
    with model:
        reply = await agent.chat("What's the weather like in Tokyo?")
    assert reply.text == "It is 22 degrees in Tokyo."
    assert agent.name == "weather-agent"
    assert model.requests[0].messages == (
        SystemMessage("You help users with weather information."),
        UserMessage("What's the weather like in Tokyo?"),
    )


def test_an_agent_without_a_model_cannot_be_built() -> None:
    with pytest.raises(ConfigError, match="has no model"):
        Agent.new("empty").build()


async def test_the_loop_runs_by_itself_until_the_model_answers_in_words() -> None:
    model = ScriptedModel(TOKYO, call("get_weather", location="Osaka"), "Both 22.")
    with model:
        reply = await Agent(model=model, tools=[weather_tool()]).chat("Tokyo or Osaka?")
    assert (reply.text, reply.stop, reply.steps) == ("Both 22.", Stop.ANSWERED, 3)
    kinds = [type(message) for message in model.requests[-1].messages]
    assert kinds == [UserMessage, AssistantMessage, ToolMessage, AssistantMessage, ToolMessage]


async def test_a_session_is_remembered_and_sessions_do_not_mix() -> None:
    model = ScriptedModel("Hello Ann.", "Ann.", "I do not know.")
    agent = Agent(model=model)
    with model:
        await agent.chat_with_session("ann", "I am Ann.")
        await agent.chat_with_session("ann", "Who am I?")
        await agent.chat_with_session("bob", "Who am I?")
    assert model.requests[1].messages == (
        UserMessage("I am Ann."),
        AssistantMessage("Hello Ann."),
        UserMessage("Who am I?"),
    )
    assert model.requests[2].messages == (UserMessage("Who am I?"),)


async def test_each_execution_fires_a_before_and_an_after_event() -> None:
    seen: list[BeforeCall | AfterCall] = []
    model = ScriptedModel([call("get_weather", location="Tokyo"), call("crash")], "done")
    hooks = Hook(before_call=seen.append, after_call=seen.append)
    with model:
        await Agent(model=model, tools=[weather_tool(), crash], hooks=[hooks]).chat("go")
    assert [(event.type, event.name) for event in seen] == [
        ("tool_call.before", "get_weather"),
        ("tool_call.before", "crash"),
        ("tool_call.after", "get_weather"),
        ("tool_call.after", "crash"),
    ]


async def test_an_event_has_type_name_input_output_error_and_metadata() -> None:
    before: list[BeforeCall] = []
    after: list[AfterCall] = []
    model = ScriptedModel([TOKYO, call("crash")], "done")
    hooks = Hook(before_call=before.append, after_call=after.append)
    with model:
        reply = await Agent(model=model, tools=[weather_tool(), crash], hooks=[hooks]).chat("go")
    assert before[0].input == {"location": "Tokyo"}
    assert (before[0].output, before[0].error) == (None, None)
    assert '"temp": 22' in after[0].output.content
    assert after[0].error is None
    assert after[1].error is not None
    assert after[1].error.startswith("error: ")
    metadata = dict(after[0].metadata)
    assert metadata["run"] == reply.run_id
    assert metadata["step"] == 1
    assert metadata["call"] == results(reply)[0].call_id
    assert metadata["conversation"]
    assert metadata["response"]


async def test_every_before_has_an_after_with_its_error_set_when_the_call_is_denied() -> None:
    after: list[AfterCall] = []
    before: list[BeforeCall] = []
    ran: list[dict[str, Any]] = []
    model = ScriptedModel(TOKYO, "I may not")
    hooks = Hook(before_call=before.append, after_call=after.append)
    with model:
        await Agent(model=model, tools=[weather_tool(ran, permission="deny")], hooks=[hooks]).chat("go")
    assert ran == []
    assert len(before) == len(after) == 1
    assert after[0].error is not None
    assert after[0].error.endswith("[TOOL_DENIED]")


@each_case(
    ("kind", "value"),
    [
        ("string", "x"),
        ("number", 1.5),
        ("integer", 3),
        ("boolean", True),
        ("array", [1, 2]),
        ("object", {"inner": {"deep": [True]}}),
    ],
)
async def test_the_types_of_json_schema_are_supported(kind: str, value: object) -> None:
    got: list[object] = []

    def take(arguments: dict[str, Any]) -> None:
        got.append(arguments["value"])

    parameters = {"type": "object", "properties": {"value": {"type": kind}}, "required": ["value"]}
    registry = Toolset([foreign_tool("take_value", "Takes it.", parameters, take)], clock=SystemClock())
    assert not (await registry.execute("take_value", {"value": value})).is_error
    assert got == [value]
    assert (await registry.execute("take_value", {})).content.endswith("[TOOL_INVALID_ARGUMENTS]")


async def test_enum_is_for_fixed_choices() -> None:
    registry = Toolset([weather_tool()], clock=SystemClock())
    result = await registry.execute("get_weather", {"location": "Tokyo", "unit": "kelvin"})
    assert "unit: 'kelvin' is not one of ['celsius', 'fahrenheit']" in result.content
