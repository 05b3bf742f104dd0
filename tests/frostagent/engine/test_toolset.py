from __future__ import annotations

import asyncio
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import pytest

from frostagent.engine.toolset import FunctionApprover, Toolset
from frostagent.types.errors import ToolNotFound
from frostagent.types.hooks import BeforeCall, Block, Hook
from frostagent.types.ports import Approver
from frostagent.types.results import Image, ToolResult
from frostagent.types.runs import RunEvent, ToolFinished, ToolStarted
from frostagent.types.tools import ToolContext, tool
from tests.cases import each_case
from tests.fakes import ManualClock, RecordingObserver, tool_context
from tests.frostagent.toolbox import ALL, Switch, Telescope, add, ask_first, crash, look, toolset


async def test_a_tool_is_run_by_its_name_the_whole_way() -> None:
    async def block(event: BeforeCall) -> Block | None:
        return Block("not 13") if event.input["a"] == 13 else None

    tools = Toolset(ALL, clock=ManualClock(), hooks=[Hook(before_call=block)])
    assert await tools.execute("add", '{"a": "2"}') == ToolResult("3", call_id="call-1", name="add")
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
    assert (fetched.content, fetched.images, fetched.details) == ("got it\n[picture 1]", (Image.of(b"x"),), {"ms": 3})


async def test_outside_a_run_a_call_cannot_wait_for_a_word() -> None:
    told: list[str | None] = []
    tools = Toolset(ALL, clock=ManualClock(), hooks=[Hook(after_call=lambda event: told.append(event.error))])
    result = await tools.execute("ask_first", {"what": "it"})
    assert "a call outside a run cannot wait for that (Do it?)" in result.content
    assert result.is_error
    assert told == [result.content]


async def test_the_approver_may_be_set_later_and_capabilities_come_with_the_context() -> None:
    tools = Toolset([add, look], clock=ManualClock(), approve={"add"})
    assert tools.approver is None
    assert (await tools.execute("add", {"a": 1})).is_error
    tools.set_approval_handler(lambda _name, _arguments: True)
    assert (await tools.execute("add", {"a": 1})).content == "2"
    assert (await tools.execute("look", "", tool_context({Telescope: object()}))).content == "object"


@each_case("arguments", [MappingProxyType({"a": 2}), {"a": object()}, {"a": float("nan")}])
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

    hooks = [Hook(after_call=lambda event: told.append(event.error or ""))]
    tools = Toolset([wait], clock=ManualClock(), hooks=hooks)
    async with asyncio.timeout(30), asyncio.TaskGroup() as group:
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
        with pytest.raises((TypeError, ValueError), match=r"no name|is a class|needs a type|a tool's name"):
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
    tools.set_approval_handler(lambda _name, _arguments: False)
    assert (await tools.execute("add", {"a": 1})).code == "TOOL_DENIED"
    context = tool_context({Approver: FunctionApprover(allow)})
    assert (await tools.execute("add", {"a": 2}, context)).content == "3"
    assert asked == [("777", "add", {"a": 1, "b": 1}), ("777", "add", {"a": 2, "b": 1})]


def test_what_is_neither_a_hook_nor_an_approver_is_refused_at_once() -> None:
    def look(_event: object) -> None: ...

    wrong: Any = look
    with pytest.raises(TypeError, match=r"look is no Hook: say where it is asked, as in Hook\(before_call=look\)"):
        Toolset([add], hooks=[wrong])
    wrong = Hook()
    with pytest.raises(TypeError, match=r"hooks are a list, as in \[Hook\(\.\.\.\)\], not Hook"):
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


# --- as a collection ------------------------------------------------------------------------------


def test_a_toolset_is_a_collection_of_tools_by_name() -> None:
    tools = Toolset([crash, add])
    assert (len(tools), len(Toolset())) == (2, 0)
    assert list(tools) == [add, crash]
    assert tools["add"] is add
    assert ("add" in tools, add in tools) == (True, True)
    assert ("dad" in tools, look in tools, 3 in tools) == (False, False, False)
    assert add.replace(label="another") not in tools
    with pytest.raises(KeyError, match="dad"):
        tools["dad"]


async def test_a_tool_is_taken_out_and_replaced_while_the_toolset_is_used() -> None:
    tools = Toolset([add, crash])
    assert [spec.name for spec in tools.definitions()] == ["add", "crash"]
    assert tools.remove("crash") is crash
    assert [spec.name for spec in tools.definitions()] == ["add"]
    assert (await tools.execute("crash")).code == "TOOL_NOT_FOUND"
    tools.replace(add.replace(description="Adds otherwise."))
    assert [spec.description for spec in tools.definitions()] == ["Adds otherwise."]
    for name in ("crash", "dad"):
        with pytest.raises(KeyError, match=name):
            tools.remove(name)
    with pytest.raises(KeyError, match="crash"):
        tools.replace(crash)
    assert list(tools) == [tools["add"]]


# --- those who look on ----------------------------------------------------------------------------


async def test_an_observer_is_told_both_ends_of_each_call_by_name() -> None:
    observer, clock = RecordingObserver(), ManualClock()
    tools = Toolset([add, crash], clock=clock, observer=observer)
    results = [await tools.execute("add", {"a": 1}), await tools.execute("crash"), await tools.execute("dad")]
    assert [(each.call_id, each.name) for each in results] == [
        ("call-1", "add"),
        ("call-2", "crash"),
        ("call-3", "dad"),
    ]
    starts = [event for event in observer.events if isinstance(event, ToolStarted)]
    ends = [event for event in observer.events if isinstance(event, ToolFinished)]
    assert [type(event) for event in observer.events] == [ToolStarted, ToolFinished] * 3
    assert [event.call.id for event in starts] == [event.call.id for event in ends] == ["call-1", "call-2", "call-3"]
    assert [event.code for event in ends] == ["ok", "TOOL_EXECUTION_FAILED", "TOOL_NOT_FOUND"]
    assert [type(event.exception) for event in ends] == [type(None), ZeroDivisionError, ToolNotFound]
    assert [event.arguments for event in ends] == [{"a": 1, "b": 1}, {}, None]


async def test_an_observer_may_be_a_function_and_one_that_breaks_harms_no_call(
    caplog: pytest.LogCaptureFixture,
) -> None:
    told: list[str] = []

    def look_on(event: RunEvent) -> None:
        told.append(event.type)
        raise LookupError

    assert (await Toolset([add], observer=look_on).execute("add", {"a": 1})).content == "2"
    assert told == ["tool_started", "tool_finished"]
    assert "the observer of a toolset broke on tool_started" in caplog.text
    with pytest.raises(TypeError, match="whoever looks on is a function"):
        Toolset([add], observer=3)  # type: ignore[arg-type]  # it is refused


async def test_a_call_with_a_context_is_told_as_that_call() -> None:
    observer = RecordingObserver()
    context = tool_context()
    result = await Toolset([ask_first], observer=observer).execute("ask_first", {"what": "it"}, context)
    assert result.call_id == context.call_id
    assert [(event.run_id, event.type) for event in observer.events] == [
        (context.run_id, "tool_started"),
        (context.run_id, "tool_finished"),
    ]


async def test_a_cancelled_call_is_told_too() -> None:
    observer, started = RecordingObserver(), asyncio.Event()

    @tool
    async def wait() -> str:
        """Waits for ever."""
        started.set()
        await asyncio.Event().wait()
        return "never"

    tools = Toolset([wait], observer=observer)
    async with asyncio.timeout(30), asyncio.TaskGroup() as group:
        task = group.create_task(tools.execute("wait"))
        await started.wait()
        task.cancel()
    (end,) = [event for event in observer.events if isinstance(event, ToolFinished)]
    assert end.code == "TOOL_CANCELLED"
