from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import pytest
from msgspec.structs import replace

from bot.domain.errors import ConfigError
from bot.domain.hooks import BeforeCall, Block, Hooks
from bot.domain.result import Image, ToolResult
from bot.domain.suspension import Allow, ApprovalRequest
from bot.domain.tool import ToolContext, ToolStatus, tool
from bot.domain.traits import Permission, ToolType
from bot.engine.toolset import Toolset
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


class Dice:
    """An object that says all about itself."""

    name, description = "roll_dice", "Rolls."
    parameters: Mapping[str, object] = {}

    def execute(self) -> str:
        return "6"


async def test_a_registry_takes_tools_functions_and_objects_and_needs_nothing_else() -> None:
    def double(number: int) -> int:
        """Doubles it."""
        return number * 2

    tools = Toolset([add, double])
    tools.register(Dice())
    assert [each.name for each in tools.list()] == ["add", "double", "roll_dice"]
    assert (await tools.execute("roll_dice")).text == "6"
    assert (await tools.execute("double", {"number": 4})).text == "8"


async def test_what_is_no_tool_is_refused_and_leaves_the_registry_as_it_was() -> None:
    tools = Toolset([add])
    told = tools.definitions()
    for wrong in (object(), Dice, 3, "add", None, print):
        with pytest.raises((TypeError, ValueError), match=r"no name|is a class|no description|a tool's name"):
            tools.register(wrong)
    assert tools.definitions() is told
    assert [each.name for each in tools.list()] == ["add"]
    assert (await tools.execute("add", {"a": 1})).text == "2"


async def test_a_function_may_be_asked_and_gets_the_calls_context() -> None:
    asked: list[object] = []

    def allow(context: ToolContext, name: str, arguments: Mapping[str, object]) -> bool:
        asked.append((context.asker.user_id, name, arguments))
        return True

    tools = Toolset([add], approve={"add"}, approver=allow)
    assert (await tools.execute("add", {"a": 1}, tool_context())).content == "2"
    tools.approver = lambda _name, _arguments: False
    assert (await tools.execute("add", {"a": 1})).code == "TOOL_DENIED"
    tools.set_approval_handler(allow)
    assert (await tools.execute("add", {"a": 2}, tool_context())).content == "3"
    assert asked == [(777, "add", {"a": 1, "b": 1}), (777, "add", {"a": 2, "b": 1})]


def test_what_is_neither_a_hook_nor_an_approver_is_refused_at_once() -> None:
    def look(_event: object) -> None: ...

    wrong: Any = look
    with pytest.raises(TypeError, match=r"look is no Hooks: say where it is asked, as in Hooks\(before_call=look\)"):
        Toolset([add], hooks=[wrong])
    wrong = Hooks()
    with pytest.raises(TypeError, match="hooks are a list of Hooks, not Hooks"):
        Toolset([add], hooks=wrong)
    wrong = 3
    with pytest.raises(TypeError, match="an approver is an object with approve, or a function, not int"):
        Toolset([add], approver=wrong)


async def test_a_result_has_its_code_and_a_failure_of_another_registry_none_of_its_own() -> None:
    inner = toolset(add)

    @tool
    async def ask_inside() -> ToolResult:
        """Passes on what another registry gives."""
        return await inner.execute("ad")

    assert (await inner.execute("add", {"a": 1})).code == ""
    assert (await inner.execute("ad")).code == "TOOL_NOT_FOUND"
    assert (await toolset(ask_inside).execute("ask_inside")).code == "TOOL_EXECUTION_FAILED"


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
