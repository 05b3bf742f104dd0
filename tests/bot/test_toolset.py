from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

import pytest

from bot.domain.errors import ConfigError
from bot.domain.hooks import BeforeCall, Block, Hooks
from bot.domain.result import Image, ToolResult
from bot.domain.suspension import Allow, ApprovalRequest
from bot.domain.tool import ToolStatus, tool
from bot.domain.traits import Permission, ToolType
from bot.toolset import Toolset
from tests.bot.toolbox import ALL, Telescope, add, ask_first, look, toolset
from tests.fakes import ManualClock, tool_context


def test_a_second_tool_of_one_name_is_an_error_unless_it_replaces_on_purpose() -> None:
    tools = toolset(add)
    with pytest.raises(ConfigError, match="tool add: is registered twice"):
        tools.register(add)
    tools.register(add, replace=True)
    assert tools.get("add") is add


def test_tools_are_listed_by_name() -> None:
    assert [tool.name for tool in toolset().list()] == sorted(tool.name for tool in ALL)


def test_a_tool_whose_needs_are_not_met_is_hidden_from_the_model() -> None:
    assert "look" not in [spec.name for spec in toolset().definitions({})]
    assert "look" in [spec.name for spec in toolset().definitions({Telescope: object()})]


@tool(replace=True)
async def add_better() -> str:
    """Adds."""
    return "better"


class Switch:
    """A tool that can be turned off."""

    def __init__(self) -> None:
        self.reason: str | Exception = ""

        @tool(available=self.why_not, summary="For the operator.")
        async def fetch() -> ToolResult:
            """Fetches."""
            return ToolResult("got it", (Image.of(b"x"),), {"ms": 3})

        self.tool = fetch

    def why_not(self) -> str:
        if isinstance(self.reason, Exception):
            raise self.reason
        return self.reason


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


@pytest.mark.parametrize(
    ("reason", "told"),
    [("", ""), ("no key", "no key"), (LookupError("secret"), "cannot say whether it is available (LookupError)")],
)
def test_availability_comes_with_its_reason(reason: str | Exception, told: str) -> None:
    switch = Switch()
    switch.reason = reason
    (status,) = toolset(switch.tool).check_availability()
    assert status == ToolStatus("fetch", ToolType.FUNCTION, "Fetches.", not told, told)


def test_availability_is_checked_for_a_runs_ports_where_they_are_named() -> None:
    tools = Toolset([look, replace(ask_first, requires=("AMAP_KEY",))], clock=ManualClock())
    assert [status.reason for status in tools.check_availability()] == ["needs AMAP_KEY", ""]
    assert [status.reason for status in tools.check_availability(())] == ["needs AMAP_KEY", "needs Telescope"]


def test_the_operators_word_is_known_and_names_that_no_tool_has() -> None:
    tools = Toolset([add, look], clock=ManualClock(), deny={"add", "ad"}, approve={"look", "loook"})
    assert [tools.permission_of(each) for each in (add, look)] == [Permission.DENY, Permission.REQUIRE_APPROVAL]
    assert tools.strangers() == ("ad", "loook")


async def test_a_tool_is_run_by_its_name_the_whole_way() -> None:
    async def block(event: BeforeCall) -> Block | None:
        return Block("not 13") if event.input["a"] == 13 else None

    tools = Toolset(ALL, clock=ManualClock(), hooks=[Hooks(before_call=block)])
    assert await tools.execute("add", '{"a": "2"}') == ToolResult("3")
    assert (await tools.execute("add", {"a": 13})).content == "error: the tool call was blocked: not 13 [TOOL_DENIED]"
    assert (await tools.execute("ad", "{}")).content.startswith('error: tool not found: "ad". Did you mean "add"?')


async def test_an_executor_is_the_whole_way_bound_to_a_name() -> None:
    tools = toolset(add, Switch().tool)
    executor = tools.get_executor("add")
    assert executor is not None
    assert (await executor('{"a": "2", "b": 3}')).content == "5"
    assert (await executor({"a": "many"})).details["family"] == "TOOL_EXECUTION_FAILED"
    assert tools.get_executor("nobody") is None
    fetched = await tools.execute("fetch")
    assert (fetched.content, fetched.images, fetched.details) == ("got it\n[图片 1]", (Image.of(b"x"),), {"ms": 3})


async def test_outside_a_run_a_call_cannot_wait_for_a_word() -> None:
    result = await toolset().execute("ask_first", {"what": "it"})
    assert "a call outside a run cannot wait for that (Do it?)" in result.content
    assert result.is_error


async def test_the_approver_may_be_set_later_and_capabilities_come_with_the_context() -> None:
    class Yes:
        async def approve(self, request: ApprovalRequest) -> Allow:
            return Allow()

    tools = Toolset([add, look], clock=ManualClock(), approve={"add"})
    assert tools.approver is None
    assert (await tools.execute("add", {"a": 1})).is_error
    tools.approver = Yes()
    assert (await tools.execute("add", {"a": 1})).content == "2"
    assert (await tools.execute("look", "", tool_context({Telescope: object()}))).content == "object"


def test_every_definition_is_json() -> None:
    assert all(json.dumps(spec.parameters) for spec in toolset().all_definitions())


@tool(rate="1/60")
async def rarely() -> str:
    """Runs once a minute."""
    return "done"


async def test_a_part_has_the_same_rules_and_quotas_and_nobody_to_ask() -> None:
    class Yes:
        async def approve(self, request: ApprovalRequest) -> Allow:
            return Allow()

    whole = Toolset([rarely, add], clock=ManualClock(), approve=["add"], approver=Yes())
    part = whole.part(["rarely", "add", "nothing"])
    assert [each.name for each in part.list()] == ["add", "rarely"]
    assert (await whole.execute("rarely")).content == "done"
    assert "TOOL_RATE_LIMITED" in (await part.execute("rarely")).content
    assert not (await whole.execute("add", {"a": 1, "b": 2})).is_error
    assert "there is nobody to ask" in (await part.execute("add", {"a": 1, "b": 2})).content


@pytest.mark.parametrize("arguments", [MappingProxyType({"a": 2}), {"a": object()}, {"a": float("nan")}])
async def test_arguments_of_any_kind_give_a_result(arguments: Mapping[str, object]) -> None:
    result = await toolset(add).execute("add", arguments)
    assert result.is_error == (not isinstance(arguments, MappingProxyType))


async def test_a_call_by_name_that_is_cancelled_tells_its_after_hooks() -> None:
    started, told = asyncio.Event(), list[str]()

    @tool(side_effects="external")
    async def wait() -> str:
        """Waits for ever."""
        started.set()
        await asyncio.Event().wait()
        return "never"

    hooks = [Hooks(after_call=lambda event: told.append(event.error or ""))]
    tools = Toolset([wait], clock=ManualClock(), hooks=hooks)
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        task = group.create_task(tools.execute("wait"))
        await started.wait()
        task.cancel()
    assert task.cancelled()
    assert [text.startswith("error: the call was cancelled. It may have been done") for text in told] == [True]
