"""Which tools of servers a request holds, and how the others are named and brought."""

from __future__ import annotations

from msgspec.structs import replace

from frostagent.agent import Agent
from frostagent.engine.external_tools import foreign_tool
from frostagent.engine.offered_tools import MOST_CHARACTERS, MOST_NAMED, MOST_SCHEMAS, USE_TOOLS, opened_servers
from frostagent.engine.server_tools import ServerTools
from frostagent.engine.toolset import Toolset
from frostagent.testing.scripted_model import ScriptedModel, call
from frostagent.types.messages import AssistantMessage, ToolCall, ToolMessage
from frostagent.types.runs import Asker, Terms
from frostagent.types.tools import Tool, ToolContext
from tests.cases import each_case
from tests.fakes import ManualClock
from tests.frostagent.toolbox import add


class Server:
    """Offers tools of these numbers, and is always there."""

    def __init__(self, name: str, size: int, about: str = "And more.") -> None:
        self.about = about
        self.name = name
        self.size = size
        self.reason = ""

    def tool(self, number: int) -> Tool:
        async def run(**_: object) -> str:
            return f"{self.name} {number}"

        made = foreign_tool(
            f"{self.name}_t{number:03}", f"Does {number}.\n{self.about}", {}, run, available=lambda: self.reason
        )
        return replace(made, server=self.name)

    def offered(self) -> tuple[Tool, ...]:
        return tuple(self.tool(number) for number in range(self.size))

    def subscribe(self, changed: object) -> None: ...

    async def first_try(self) -> None: ...

    async def run(self) -> None: ...


def registry(*servers: Server) -> Toolset:
    tools = Toolset([add], clock=ManualClock())
    for server in servers:
        ServerTools(tools, server)
    return tools


def names(tools: Toolset, *opened: str, terms: Terms | None = None) -> list[str]:
    return [spec.name for spec in tools.definitions((), terms or Terms(), opened)]


def test_as_many_as_a_request_holds_are_offered_whole() -> None:
    tools = registry(Server("a", 20), Server("b", MOST_SCHEMAS - 21))
    assert len(names(tools)) == MOST_SCHEMAS
    assert USE_TOOLS not in names(tools)
    assert names(registry(Server("a", 0))) == ["add"]


def test_beyond_that_servers_are_named_until_they_are_opened() -> None:
    tools = registry(Server("a", 20), Server("b", 30))
    first = names(tools)
    assert len(first) <= MOST_SCHEMAS
    assert {name[0] for name in first if name not in {"add", USE_TOOLS}} == {"a"}
    (use,) = [spec for spec in tools.definitions() if spec.name == USE_TOOLS]
    assert "server b:\n- b_t000: Does 0.\n- b_t001" in use.description
    assert "And more" not in use.description
    opened = names(tools, "b")
    assert len(opened) <= MOST_SCHEMAS
    assert sum(name.startswith("b_") for name in opened) == 30
    assert names(tools, "b", "a") == names(tools, "a", "b", "a")
    assert tools.definitions((), Terms(), ("b",)) is tools.definitions((), Terms(), ("b",))
    assert len(tools.all_definitions()) <= MOST_SCHEMAS


def test_of_an_opened_server_that_is_too_large_a_part_is_offered() -> None:
    tools = registry(Server("a", 200))
    assert names(tools) == ["add", USE_TOOLS]
    opened = names(tools, "a")
    assert len(opened) == MOST_SCHEMAS
    (use,) = [spec for spec in tools.definitions() if spec.name == USE_TOOLS]
    assert f"- and {200 - MOST_NAMED} more" in use.description


def test_of_large_schemas_a_request_holds_fewer() -> None:
    tools = registry(Server("a", 10, about="x" * 19_000), Server("b", 10))
    assert {name[0] for name in names(tools) if name not in {"add", USE_TOOLS}} == {"b"}
    opened = [name for name in names(tools, "a") if name.startswith("a_")]
    assert len(opened) == MOST_CHARACTERS // 19_100


def test_a_withheld_server_is_not_even_named() -> None:
    tools = registry(Server("a", 60))
    assert names(tools, terms=Terms(withheld=frozenset({"a"}))) == ["add"]


async def test_a_call_of_a_withheld_tool_names_none_of_its_server() -> None:
    tools = registry(Server("a", 3), Server("b", 1))
    here = ToolContext(
        run_id="r", step=1, call_id="c", conversation="", asker=Asker("1"), deadline=0.0,
        terms=Terms(withheld=frozenset({"a"})),
    )  # fmt: skip
    result = await tools.execute("a_t001", {}, here)
    assert result.code == "TOOL_NOT_FOUND"
    assert result.content.endswith(
        '"a_t001". Did you mean "b_t000"? Available: add, b_t000, use_tools. [TOOL_NOT_FOUND]'
    )
    assert (await tools.execute("a_t001")).content == "a 1"


def test_a_server_that_is_away_is_not_named() -> None:
    server = Server("a", 60)
    tools = registry(server)
    server.reason = "is away"
    assert names(tools) == ["add"]


def test_a_part_without_the_tool_that_brings_others_has_all_of_its_own() -> None:
    tools = registry(Server("a", 60))
    part = tools.part([tool.name for tool in tools.list() if tool.server])
    assert len(part.definitions()) == 60


async def test_a_run_brings_the_tools_of_a_server() -> None:
    model = ScriptedModel(call(USE_TOOLS, server="b"), call("b_t001"), call(USE_TOOLS, server="c"), "done")
    agent = Agent(model=model, tools=[add, Server("a", 20), Server("b", 30)])
    result = await agent.run("go")
    held = [[spec.name for spec in request.tools] for request in model.requests]
    assert "b_t001" not in held[0]
    assert "b_t001" in held[1]
    assert result.text == "done"
    told = [message.content for message in result.messages if isinstance(message, ToolMessage)]
    assert told[1] == "b 1"
    assert "there is no server c here; there is a, b." in told[2]


@each_case(
    ("arguments", "server"),
    [('{"server": "a"}', "a"), ("{}", ""), ("[]", ""), ("{", ""), ('{"server": 1}', ""), ("[" * 10**5, "")],
)
def test_what_a_run_has_opened_stands_in_its_calls(arguments: str, server: str) -> None:
    message = AssistantMessage("", (ToolCall("1", USE_TOOLS, arguments), ToolCall("2", "other", '{"server": "b"}')))
    assert opened_servers([message]) == tuple(filter(None, [server]))
