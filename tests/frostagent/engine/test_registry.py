from __future__ import annotations

import json

import pytest
from msgspec.structs import replace

from frostagent.engine.toolset import Toolset
from frostagent.types.errors import ConfigError
from frostagent.types.messages import ToolCall
from frostagent.types.runs import Terms
from frostagent.types.tools import ToolStatus, tool
from frostagent.types.traits import Audience, Permission, ToolType
from tests.cases import each_case
from tests.fakes import ManualClock, tool_context
from tests.frostagent.toolbox import ALL, Switch, Telescope, add, ask_first, echo, executed_of, look, toolset


def test_a_second_tool_of_one_name_is_an_error_unless_it_replaces_on_purpose() -> None:
    tools = toolset(add)
    with pytest.raises(ConfigError, match="tool add: is registered twice"):
        tools.register(add)
    tools.register(add, replace=True)
    assert tools.get("add") is add


def test_tools_are_listed_by_name() -> None:
    assert [tool.name for tool in toolset().list()] == sorted(tool.name for tool in ALL)


def test_a_tool_whose_needs_are_not_met_is_hidden_from_the_model() -> None:
    tools = toolset()
    assert "look" not in [spec.name for spec in tools.definitions({})]
    assert "look" in [spec.name for spec in tools.definitions({Telescope: object()})]


@tool(replace=True)
async def add_better() -> str:
    """Adds."""
    return "better"


def test_a_tool_may_say_itself_that_it_replaces_another() -> None:
    tools = toolset(add, add_better)
    assert [each.name for each in tools.list()] == ["add", "add_better"]
    tools.register(add_better)
    assert tools.get("add_better") is add_better


def test_what_is_unavailable_or_denied_is_hidden_from_the_model_but_known() -> None:
    switch = Switch()
    tools = Toolset([add, switch.tool], clock=ManualClock(), deny={"add"})
    assert [spec.name for spec in tools.definitions()] == ["fetch"]
    switch.reason = "no network"
    assert tools.definitions() == ()
    assert [spec.name for spec in tools.all_definitions()] == ["add", "fetch"]


def test_the_same_tools_are_told_with_the_same_object_until_one_of_them_changes() -> None:
    switch = Switch()
    tools = toolset(add, switch.tool)
    first = tools.definitions({})
    assert tools.definitions({}) is first
    switch.reason = "off"
    assert tools.definitions({}) is not first
    switch.reason = ""
    assert tools.definitions({}) is first


def test_a_tool_that_is_registered_later_is_told_of_too() -> None:
    tools = Toolset([add], clock=ManualClock(), deny={"ask_first"})
    assert [spec.name for spec in tools.definitions()] == ["add"]
    tools.register(ask_first)
    tools.register(add_better)
    assert [spec.name for spec in tools.definitions()] == ["add", "add_better"]


@each_case(
    ("reason", "told"),
    [("", ""), ("no key", "no key"), (LookupError("secret"), "cannot say whether it is available (LookupError)")],
)
def test_availability_comes_with_its_reason(reason: str | Exception, told: str) -> None:
    switch = Switch()
    switch.reason = reason
    (status,) = toolset(switch.tool).check_availability()
    assert status == ToolStatus("fetch", ToolType.FUNCTION, "For the operator.", not told, told)


def test_availability_is_checked_for_a_runs_ports_where_they_are_named() -> None:
    tools = Toolset([look, replace(ask_first, requires=("AMAP_KEY",))], clock=ManualClock())
    assert [status.reason for status in tools.check_availability()] == ["requires AMAP_KEY (not configured)", ""]
    assert [status.reason for status in tools.check_availability(())] == [
        "requires AMAP_KEY (not configured)",
        "needs Telescope",
    ]


def test_the_operators_word_is_known_and_names_that_no_tool_has() -> None:
    tools = Toolset([add, look], clock=ManualClock(), deny={"add", "ad"}, approve={"look", "loook"})
    assert [tools.permission_of(each) for each in (add, look)] == [Permission.DENY, Permission.REQUIRE_APPROVAL]
    assert tools.unknown_names() == ("ad", "loook")


def test_what_nobody_there_may_call_is_not_offered_and_what_is_stays_the_same_object() -> None:
    ours = echo(audience="owner")
    tools = Toolset([add, ours], clock=ManualClock())
    here = Terms(highest=Audience.GROUP_ADMIN)
    assert [spec.name for spec in tools.definitions()] == ["add", "say"]
    assert [spec.name for spec in tools.definitions((), here)] == ["add"]
    opened = Terms(audiences={"say": Audience.EVERYONE, "add": Audience.OWNER}, highest=Audience.EVERYONE)
    assert [spec.name for spec in tools.definitions((), opened)] == ["say"]
    for terms, left in ((Terms(highest=Audience.EVERYONE), "add"), (Terms(denied=frozenset({"add"})), "say")):
        assert [spec.name for spec in tools.definitions((), terms)] == [left]
    assert tools.definitions((), opened) is tools.definitions(
        (), Terms(opened.denied, {**opened.audiences}, opened.highest)
    )


def test_every_definition_is_json() -> None:
    assert all(json.dumps(spec.parameters) for spec in toolset().all_definitions())


@tool(rate="1/60")
async def rarely() -> str:
    """Runs once a minute."""
    return "done"


async def test_a_part_has_the_same_rules_and_quotas_and_nobody_to_ask() -> None:
    whole = Toolset([rarely, add], clock=ManualClock(), approve=["add"], approver=lambda _name, _arguments: True)
    part = whole.part(["rarely", "add", "nothing"])

    async def called(name: str) -> str:
        call = ToolCall("c", name, '{"a": 1}' if name == "add" else "")
        return (await executed_of(part, call, tool_context())).message.content

    assert [each.name for each in part.list()] == ["add", "rarely"]
    assert (await whole.execute("rarely")).content == "done"
    assert "TOOL_RATE_LIMITED" in await called("rarely")
    assert not (await whole.execute("add", {"a": 1, "b": 2})).is_error
    assert "there is nobody to ask" in await called("add")


def test_what_is_required_and_not_configured_is_told_once_and_what_a_run_lacks_is_not(
    caplog: pytest.LogCaptureFixture,
) -> None:
    tools = Toolset([look, replace(ask_first, requires=("AMAP_KEY", "network"), needs=(Telescope,))])
    for ports in ((), (Telescope,), ()):
        tools.definitions(ports)
    assert caplog.messages == ["tool ask_first is not offered: it requires AMAP_KEY, network (not configured)"]
    (status, _) = tools.check_availability(())
    assert status.reason == "needs Telescope and requires AMAP_KEY, network (not configured)"


def test_the_first_critical_tool_that_cannot_be_used_is_told_with_its_reason() -> None:
    tools = Toolset([replace(look, critical=True, summary="For people."), add])
    assert tools.lost((Telescope,)) is None
    lost = ToolStatus("look", ToolType.FUNCTION, "For people.", available=False, reason="needs Telescope")
    assert tools.lost(()) == lost
    assert Toolset(tools.list(), deny={"look"}).lost(()) is None


def test_what_replaces_a_tool_is_what_the_model_is_told_from_then_on() -> None:
    tools = Toolset([add])
    assert [spec.description for spec in tools.definitions()] == ["Adds two numbers."]
    tools.register(replace(add, description="Adds better."), replace=True)
    assert [spec.description for spec in tools.definitions()] == ["Adds better."]
