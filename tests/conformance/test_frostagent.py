"""Document 001, FrostAgent in Go: tools with a JSON schema, a registry, four built-in tools, the send hook."""

from __future__ import annotations

import json
from typing import Any

import pytest

import tools
from bot.core.ports import Web
from frostagent import Agent, ConfigError, ScriptedModel, SystemClock, ToolContext, Toolset, call, class_tool
from frostagent.engine.subagents import NamedSubagents, Subagent
from frostagent.types.messages import AssistantMessage, Completion, FinishReason, ModelRequest, ToolMessage
from frostagent.types.ports import Media, Speaker, Subagents
from frostagent.types.results import ToolResult
from frostagent.words import ENGLISH
from tests.cases import each_case
from tests.conformance.weather import echo, results
from tests.fakes import ManualClock, until
from tests.frostagent.runs import engine
from tools.get_game_version.games import Games
from tools.get_weather.sources import WeatherSources

BUILT_IN = {tool.name: tool for tool in tools.discover()}
HELLO: dict[str, Any] = {"messages": [{"type": "plain", "text": "你好"}]}


class Greeting:
    """A tool as document 001 has them: four methods, the arguments as raw JSON."""

    def __init__(self) -> None:
        self.got: list[str] = []

    def name(self) -> str:
        return "greet_person"

    def description(self) -> str:
        return "Greets somebody by name."

    def parameters(self) -> dict[str, Any]:
        return {"type": "object", "properties": {"who": {"type": "string"}}, "required": ["who"]}

    def execute(self, args: str) -> str:
        self.got.append(args)
        return f"Hello {json.loads(args)['who']}"


async def test_a_tool_is_an_object_with_name_description_parameters_and_execute() -> None:
    source = Greeting()
    tool = class_tool(source)
    assert tool.spec.name == "greet_person"
    assert tool.spec.description == "Greets somebody by name."
    assert tool.spec.parameters == source.parameters()
    assert (await Toolset([tool], clock=SystemClock()).execute("greet_person", '{"who": "Ann"}')).content == "Hello Ann"


async def test_execute_gets_the_arguments_as_json_text() -> None:
    source = Greeting()
    model = ScriptedModel(call("greet_person", '{"who":"Ann"}'), "done")
    with model:
        await Agent(model=model, tools=[source]).chat("greet Ann")
    assert [json.loads(text) for text in source.got] == [{"who": "Ann"}]


async def test_the_raw_argument_text_is_kept_on_the_call() -> None:
    raw = '{ "text" :"x" }'
    model = ScriptedModel(call("echo", raw), "done")
    with model:
        await Agent(model=model, tools=[echo]).chat("go")
    assert model.requests[1].messages[1].type == "assistant"
    assert model.requests[1].messages[1].tool_calls[0].arguments == raw


async def test_the_result_is_appended_as_a_tool_message_with_its_call_id() -> None:
    model = ScriptedModel([call("echo", text="a"), call("echo", text="b")], "done")
    with model:
        await Agent(model=model, tools=[echo]).chat("go")
    made = model.requests[1].messages[1]
    assert made.type == "assistant"
    first, second = made.tool_calls
    assert model.requests[1].messages[2:] == (
        ToolMessage(first.id, "echo", "a"),
        ToolMessage(second.id, "echo", "b"),
    )


async def test_every_request_carries_the_definitions() -> None:
    model = ScriptedModel(call("echo", text="a"), "done")
    with model:
        await Agent(model=model, tools=[echo]).chat("go")
    assert [request.tools for request in model.requests] == [(echo.spec,), (echo.spec,)]


def test_a_registry_begins_empty() -> None:
    assert Toolset(clock=SystemClock()).list() == ()


def test_a_registered_tool_is_got_by_its_name() -> None:
    registry = Toolset([echo], clock=SystemClock())
    assert registry.get("echo") is echo
    assert registry.get("ohce") is None


def test_a_second_registration_is_an_error_and_overwrites_only_on_purpose() -> None:
    registry = Toolset([echo], clock=SystemClock())
    other = echo.wrap(lambda _context, _arguments: None)
    with pytest.raises(ConfigError, match="registered twice"):
        registry.register(other)
    registry.register(other, replace=True)
    assert registry.get("echo") is other


async def test_an_executor_is_the_whole_way_of_a_call_never_the_bare_body() -> None:
    registry = Toolset([echo], clock=SystemClock())
    execute = registry.get_executor("echo")
    assert execute is not None
    assert (await execute('{"text": "hi"}')).content == "hi"
    assert (await execute("{}")).content == "error: text: required [TOOL_INVALID_ARGUMENTS]"
    assert registry.get_executor("ohce") is None


def test_tools_are_listed_by_name() -> None:
    names = [tool.name for tool in Toolset(reversed(BUILT_IN.values()), clock=SystemClock()).list()]
    assert names == sorted(BUILT_IN)


async def test_an_unknown_name_is_a_result_and_no_exception() -> None:
    result = await Toolset([echo], clock=SystemClock()).execute("ecko", "{}")
    assert result.is_error
    assert result.content.startswith("error: tool not found: ")
    assert 'Did you mean "echo"?' in result.content


def test_four_tools_are_built_in() -> None:
    assert {"send_message", "use_subagent", "get_weather", "get_game_version"} <= BUILT_IN.keys()


def test_send_message_takes_parts_of_seven_types_and_another_session() -> None:
    schema = BUILT_IN["send_message"].spec.parameters
    part = schema["properties"]["messages"]["items"]
    assert part["properties"]["type"]["enum"] == [
        "plain", "image", "record", "video", "file", "mention_user", "quote",
    ]  # fmt: skip
    assert set(part["properties"]) == {"type", "text", "path", "url", "mention_user_id", "message_id"}
    assert part["required"] == ["type"]
    assert schema["required"] == ["messages"]
    assert schema["properties"]["session"]["type"] == "string"


@each_case(
    ("name", "required"),
    [("use_subagent", ["subagent_name", "content"]), ("get_weather", ["city"]), ("get_game_version", ["game"])],
)
def test_the_other_built_in_tools_require_what_the_document_says(name: str, required: list[str]) -> None:
    schema = BUILT_IN[name].spec.parameters
    assert schema["required"] == required
    assert all(schema["properties"][key]["type"] == "string" for key in required)


class Slow:
    """A subagent's model that is not done before somebody has been told something."""

    name = "slow"

    def __init__(self, said: list[Any]) -> None:
        self.said = said

    async def complete(self, _request: ModelRequest) -> Completion:
        await until(lambda: self.said)
        return Completion(AssistantMessage("print(1)"), FinishReason.STOP)


async def test_whoever_asked_is_told_of_a_subagent_and_the_description_says_by_whom() -> None:
    said: list[Any] = []
    coder = Subagent(name="Coder", description="", prompt="", runner=lambda _observer: engine(Slow(said)))
    staff = NamedSubagents([coder], clock=ManualClock())
    model = ScriptedModel(call("use_subagent", subagent_name="Coder", content="print one"), "done")
    shelf = BUILT_IN["use_subagent"]
    agent = Agent(model=model, tools=[shelf], ports={Subagents: staff}, send_hook=said.append)
    with model:
        (result,) = results(await agent.chat("go"))
    assert said == [{"messages": [{"type": "plain", "text": ENGLISH.still_working.format(name="Coder")}]}]
    assert result.content == "print(1)"
    assert "who asked is told so by itself, so do not announce it" in shelf.description


@each_case(
    ("name", "needs"),
    [
        ("send_message", (Speaker, Media)),
        ("use_subagent", (Subagents,)),
        ("get_weather", (Web, WeatherSources)),
        ("get_game_version", (Web, Games)),
    ],
)
async def test_the_built_in_tools_name_the_ports_they_need(name: str, needs: tuple[type, ...]) -> None:
    registry = Toolset([BUILT_IN[name]])
    assert BUILT_IN[name].needs == needs
    assert [spec.name for spec in registry.definitions(needs)] == [name]
    for missing in needs:
        there = [port for port in needs if port is not missing]
        assert registry.definitions(there) == ()
        assert [status.reason for status in registry.check_availability(there)] == [f"needs {missing.__name__}"]


async def test_the_send_hook_fires_before_the_next_model_request() -> None:
    happened: list[object] = []
    model = ScriptedModel(call("send_message", **HELLO), "done")
    agent = Agent(
        model=model,
        tools=[BUILT_IN["send_message"]],
        send_hook=lambda payload: happened.append((payload, len(model.requests))),
    )
    with model:
        await agent.chat("say hello")
    assert happened == [(HELLO, 1)]


async def test_what_the_model_reads_after_a_send_is_that_it_was_sent() -> None:
    model = ScriptedModel(call("send_message", **HELLO), "done")
    agent = Agent(model=model, tools=[BUILT_IN["send_message"]], send_hook=lambda _payload: None)
    with model:
        (result,) = results(await agent.chat("say hello"))
    assert result.content == "消息已发送"


async def test_without_a_send_hook_the_result_is_the_normalised_payload() -> None:
    model = ScriptedModel(call("send_message", messages={"type": "plain", "text": "你好", "url": None}), "done")
    agent = Agent(model=model, tools=[BUILT_IN["send_message"]])
    with model:
        (result,) = results(await agent.chat("say hello"))
    assert json.loads(result.content) == HELLO
    assert "你好" in result.content


async def test_an_agent_runs_the_tools_of_a_registry_of_its_own() -> None:
    registry = Toolset([echo, BUILT_IN["send_message"]], clock=SystemClock())
    model = ScriptedModel([call("echo", text="a"), call("send_message", **HELLO)], "done")
    agent = Agent(model=model, tools=registry)
    with model:
        reply = await agent.chat("go")
    assert agent.tools is registry
    assert [result.is_error for result in results(reply)] == [False, False]


class Known:
    """The Coder, who knows it."""

    names = ("Coder",)

    async def ask(self, _context: ToolContext, name: str, content: str) -> ToolResult:
        return ToolResult(f"{name}: {content}!")


async def test_a_tool_can_be_taken_from_the_shelf_and_given_to_an_agent() -> None:
    shelf = BUILT_IN["use_subagent"]
    task = call("use_subagent", subagent_name="Coder", content="print one")
    model = ScriptedModel(task, "done", task, "nobody there")
    with model:
        reply = await Agent(model=model, tools=[shelf], ports={Subagents: Known()}).chat("go")
        alone = await Agent(model=model, tools=[shelf]).chat("go")
    assert results(reply)[0].content == "Coder: print one!"
    assert model.requests[0].tools == (shelf.spec,)
    assert results(alone)[0].code == "TOOL_UNAVAILABLE"
    assert model.requests[2].tools == ()
