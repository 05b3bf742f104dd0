"""Which tools an agent has, and which of them it can use."""

from __future__ import annotations

from typing import Any

import pytest

from frostagent import Agent, ConfigError, Hook, ScriptedModel, Toolset, call, tool
from frostagent.types.ports import Speaker
from tests.cases import each_case
from tests.conformance.weather import results
from tests.frostagent.toolbox import Telescope, add, count_words, echo, look

NEEDS = "needs Telescope"


@tool(requires=("SKY_KEY",))
async def chart() -> str:
    """Draws a chart."""
    return "chart"


def offered(model: ScriptedModel) -> list[str]:
    return [spec.name for spec in model.requests[0].tools]


async def test_a_tool_whose_needs_are_unmet_is_away_and_both_say_so(caplog: pytest.LogCaptureFixture) -> None:
    with ScriptedModel("hi") as model:
        agent = Agent(model=model, name="astronomer", tools=[look, add, chart])
        (warning,) = [record.getMessage() for record in caplog.records]
        await agent.run("go")
    assert warning == (
        "agent astronomer does not offer what it lacks something for: "
        f"look {NEEDS}; chart requires SKY_KEY (not configured)"
    )
    assert offered(model) == ["add"]
    reasons = {"add": "", "chart": "requires SKY_KEY (not configured)", "look": NEEDS}
    for statuses in (agent.check_availability(), agent.tools.check_availability()):
        assert {each.name: each.reason for each in statuses} == reasons
        assert {each.name: each.available for each in statuses} == {name: not why for name, why in reasons.items()}
    assert len(caplog.records) == 1, "it is warned of once"


async def test_with_its_deps_the_tool_is_there(caplog: pytest.LogCaptureFixture) -> None:
    with ScriptedModel("hi") as model:
        agent = Agent(model=model, tools=[look], deps={Telescope: object()})
        await agent.run("go")
    assert offered(model) == ["look"]
    assert [each.available for each in (*agent.check_availability(), *agent.tools.check_availability())] == [True] * 2
    assert caplog.records == []


async def test_a_run_may_bring_what_the_agent_lacks() -> None:
    with ScriptedModel("hi") as model:
        await Agent(model=model, tools=[look]).run("go", deps={Telescope: object()})
    assert offered(model) == ["look"]


def test_what_every_agent_has_is_not_missed() -> None:
    @tool(needs=(Speaker,))
    async def speak() -> str:
        """Speaks."""
        return ""

    assert Agent(model=ScriptedModel(), tools=[speak]).check_availability()[0].available


def test_the_tools_of_two_agents_are_judged_by_what_any_of_them_has() -> None:
    tools = Toolset([look])
    Agent(model=ScriptedModel(), tools=tools)
    assert [each.reason for each in tools.check_availability()] == [NEEDS]
    Agent(model=ScriptedModel(), tools=tools, deps={Telescope: object()})
    assert [each.reason for each in tools.check_availability()] == [""]


# --- what `tools` takes ---------------------------------------------------------------------------


def double(number: int) -> int:
    """Doubles it."""
    return 2 * number


async def test_tools_are_functions_objects_and_toolsets_mixed() -> None:
    several = Toolset([add, count_words])
    agent = Agent(model=ScriptedModel(), tools=[double, several, *Toolset([look])])
    assert [each.name for each in agent.tools] == ["add", "count_words", "double", "look"]
    assert agent.tools is not several
    assert Agent(model=ScriptedModel(), tools=several).tools is several


async def test_the_tools_of_a_toolset_keep_the_permissions_they_have_there() -> None:
    several = Toolset([add, chart, echo(name="say")], deny=["say"], approve=["add"], configured=["SKY_KEY"])
    with ScriptedModel([call("say"), call("add", a=1), call("chart")], "done") as model:
        reply = await Agent(model=model, tools=[several, double]).run("go")
    assert offered(model) == ["add", "chart", "double"]
    assert [each.code for each in results(reply)] == ["TOOL_DENIED", "TOOL_DENIED", ""]


@each_case("options", [{"hooks": [Hook()]}, {"approver": lambda _name, _arguments: True}])
def test_what_a_toolset_says_of_calls_is_not_dropped_unseen(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="Give the hooks and the approver to the agent instead"):
        Agent(model=ScriptedModel(), tools=[Toolset([add], **options), double])


def test_two_tools_of_one_name_are_refused() -> None:
    with pytest.raises(ConfigError, match="registered twice"):
        Agent(model=ScriptedModel(), tools=[add, Toolset([add])])
