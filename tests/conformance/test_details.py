"""The details that the documents fix together, each as it was settled."""

from __future__ import annotations

import asyncio
import base64
import json
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

import tools
from bot.runtime.tool_discovery import PackagedTools, ToolFolder, discover
from frostagent import (
    Agent,
    Asker,
    Hook,
    Image,
    RunFailed,
    ScriptedModel,
    SystemClock,
    Tool,
    ToolFailed,
    ToolResult,
    Toolset,
    call,
    foreign_tool,
    tool,
)
from frostagent.types.traits import Audience
from tests.cases import each_case
from tests.conformance.weather import Told, counted, crash, echo, result_of, results
from tests.fakes import ManualClock


async def run_one(used: Tool, arguments: str | Mapping[str, object] = "", **options: Any) -> ToolResult:
    return await Toolset([used], clock=SystemClock(), **options).execute(used.name, arguments)


# --- error results ------------------------------------------------------------------------------------


async def test_error_results_read_exactly_error_message_and_code() -> None:
    @tool
    def fail() -> str:
        """Fails."""
        raise ToolFailed("no paper")

    assert (await run_one(fail)).content == "error: no paper [TOOL_EXECUTION_FAILED]"


async def test_unknown_names_read_error_tool_not_found() -> None:
    result = await Toolset([echo], clock=SystemClock()).execute("fly")
    assert result.content == 'error: tool not found: "fly". Available: echo. [TOOL_NOT_FOUND]'


# --- coercion -----------------------------------------------------------------------------------------


class Place(BaseModel):
    """A place."""

    city: str


@tool
def take(
    count: int = 0,
    ratio: float = 0.0,
    flag: bool = False,
    user_id: str = "",
    tags: list[str] | None = None,
    place: Place | None = None,
) -> str:
    """Takes all kinds."""
    city = place.city if place else ""
    return json.dumps([count, ratio, flag, user_id, tags, city], ensure_ascii=False)


@each_case(
    ("given", "taken"),
    [
        ({"count": "3"}, [3, 0.0, False, "", None, ""]),
        ({"count": 2.0}, [2, 0.0, False, "", None, ""]),
        ({"ratio": "1.5"}, [0, 1.5, False, "", None, ""]),
        ({"flag": "true"}, [0, 0.0, True, "", None, ""]),
        ({"user_id": 10001}, [0, 0.0, False, "10001", None, ""]),
        ({"tags": "one"}, [0, 0.0, False, "", ["one"], ""]),
        ({"tags": '["one", "two"]'}, [0, 0.0, False, "", ["one", "two"], ""]),
        ({"place": '{"city": "北京"}'}, [0, 0.0, False, "", None, "北京"]),
    ],
)
async def test_common_mistakes_are_coerced_and_recorded(given: dict[str, Any], taken: list[Any]) -> None:
    with ScriptedModel(call("take", **given), "done") as model:
        agent = Agent(model=model, tools=[take])
        told = Told(agent)
        await agent.chat("go")
    assert json.loads(told.finished[0].result.content) == taken
    (line,) = told.finished[0].coerced
    assert line.startswith(f"{next(iter(given))}: ")


@each_case("given", [{"count": 2.5}, {"count": "2.5"}, {"count": "three"}, {"flag": "maybe"}])
async def test_what_can_mean_several_things_is_refused(given: dict[str, Any]) -> None:
    assert (await run_one(take, given)).content.endswith("[TOOL_INVALID_ARGUMENTS]")


async def test_ambiguous_unions_are_never_guessed() -> None:
    schema = {"properties": {"value": {"type": ["integer", "boolean"]}}, "required": ["value"]}
    either = foreign_tool("take_either", "Takes either.", schema, lambda arguments: arguments["value"])
    assert (await run_one(either, {"value": "1"})).is_error
    assert (await run_one(either, {"value": 1})).content == "1"


async def test_defaults_of_foreign_schemas_are_applied_when_omitted() -> None:
    schema = {"properties": {"limit": {"type": "integer", "default": 5}}}
    listed = foreign_tool("list_it", "Lists.", schema, lambda arguments: arguments["limit"])
    assert (await run_one(listed)).content == "5"


async def test_unknown_keys_are_reported_to_tools_that_only_read_and_refused_by_others() -> None:
    with ScriptedModel(call("echo", text="hi", loud=True), "done") as model:
        result = await result_of(Agent(model=model, tools=[echo]), model)
    assert result.startswith("hi")
    assert "loud" in result
    refused = await run_one(take, {"cuont": 3})
    assert refused.content == (
        'error: cuont: no such field, leave it out; did you mean "count"? [TOOL_INVALID_ARGUMENTS]'
    )


# --- names --------------------------------------------------------------------------------------------


@each_case(
    ("foreign", "ours"), [("getWeather", "get_weather"), ("get-weather", "get_weather"), ("get_weather", "get_weather")]
)
async def test_foreign_names_are_mapped_with_a_way_back(foreign: str, ours: str) -> None:
    mapped = foreign_tool(foreign, "Weather.", {}, lambda: "fine")
    assert (mapped.name, mapped.origin or mapped.name) == (ours, foreign)


def test_a_name_begins_with_a_letter_and_has_at_most_64_characters() -> None:
    body = echo.function
    assert body is not None
    assert tool(name="a" * 64)(body).name == "a" * 64
    for name in ("a" * 65, "_a", "A", "a-b"):
        with pytest.raises(ValueError, match="a tool's name must match"):
            tool(name=name)(body)


def test_label_and_summary_are_apart_from_what_the_model_reads() -> None:
    body = echo.function
    assert body is not None
    shown = tool(label="回声", summary="for the operator")(body)
    assert "回声" not in repr(shown.spec)
    assert "operator" not in repr(shown.spec)


# --- results ------------------------------------------------------------------------------------------


@each_case(
    ("value", "text"),
    [
        ("as it is", "as it is"),
        ({"城市": "北京"}, '{"城市": "北京"}'),
        ([1, "二"], '[1, "二"]'),
        (Place(city="北京"), '{"city":"北京"}'),
        (None, "(no output)"),
        ("", "(no output)"),
    ],
)
async def test_what_a_tool_returns_is_rendered_for_the_model(value: object, text: str) -> None:
    given = foreign_tool("give_it", "Gives.", {}, lambda: value)
    assert (await run_one(given)).content == text


PIXEL = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNkYPgPAAEDAQF3uj6jAAAAAElFTkSuQmCC")
SHOWN = Image.of(PIXEL)


@each_case(
    ("value", "text"),
    [
        (PIXEL, "[picture 1]"),
        (SHOWN, "[picture 1]"),
        (["a pixel", SHOWN], "a pixel\n[picture 1]"),
        ({"picture": PIXEL}, '{"picture": "[picture 1]"}'),
        (f"see ![pixel]({SHOWN.url})", "see ![pixel]([picture 1])"),
    ],
)
async def test_a_returned_picture_is_shown_and_never_text(value: object, text: str) -> None:
    drawn = foreign_tool("draw_it", "Draws.", {}, lambda: value)
    with ScriptedModel(call("draw_it"), "done") as model:
        reply = await Agent(model=model, tools=[drawn]).chat("go")
    assert (results(reply)[0].text, results(reply)[0].images) == (text, (SHOWN.url,))


async def test_system_exit_and_a_cancelled_error_of_its_own_are_error_results() -> None:
    @tool
    async def leave() -> str:
        """Leaves."""
        raise SystemExit(1)

    @tool
    async def give_up() -> str:
        """Gives up."""
        raise asyncio.CancelledError

    for used in (leave, give_up):
        assert (await run_one(used)).content.endswith("[TOOL_EXECUTION_FAILED]")


async def test_plain_functions_run_in_threads() -> None:
    @tool
    def where() -> bool:
        """Says where it runs."""
        return threading.current_thread() is threading.main_thread()

    assert (await run_one(where)).content == "False"


def broken(*_: object) -> Any:
    raise KeyError("secret detail")


@each_case("declared", [{"prepare": broken}, {"check": broken}])
async def test_a_broken_prepare_or_check_is_an_error_result(declared: dict[str, Any]) -> None:
    look, ran = counted(**declared)
    result = await run_one(look, {"text": "hi"})
    assert result.content.endswith("[TOOL_EXECUTION_FAILED]")
    assert "secret detail" not in result.content
    assert ran == []


@each_case("hooks", [Hook(before_call=broken), Hook(after_call=broken)])
async def test_a_broken_hook_is_an_error_result_and_the_run_goes_on(hooks: Hook) -> None:
    look, ran = counted()
    with ScriptedModel(call("look", text="hi"), "done") as model:
        reply = await Agent(model=model, tools=[look], hooks=[hooks]).chat("go")
    assert results(reply)[0].content.endswith("[TOOL_EXECUTION_FAILED]")
    assert ran == ([] if hooks.before_call else ["hi"])
    assert reply.text == "done"


async def test_a_broken_available_hides_the_tool_and_breaks_nothing() -> None:
    body = echo.function
    assert body is not None
    with ScriptedModel("done") as model:
        await Agent(model=model, tools=[tool(available=broken)(body)]).chat("go")
    assert model.requests[0].tools == ()


# --- effects, retries, failures -----------------------------------------------------------------------


@each_case(
    ("declared", "transient", "times"),
    [
        ({}, True, 1),
        ({"idempotent": True}, True, 1),
        ({"side_effects": "read"}, True, 1),
        ({"side_effects": "read", "idempotent": True}, False, 1),
        ({"side_effects": "read", "idempotent": True}, True, 2),
        ({"side_effects": "write", "idempotent": True}, True, 2),
    ],
)
async def test_retried_once_are_transient_failures_of_tools_declared_idempotent(
    declared: dict[str, Any], transient: bool, times: int
) -> None:
    tried: list[int] = []

    @tool(**declared)
    async def fail() -> str:
        """Fails."""
        tried.append(1)
        raise ToolFailed("busy", transient=transient)

    assert (await Toolset([fail], clock=ManualClock()).execute("fail")).is_error
    assert len(tried) == times


async def test_tool_failures_are_listed_whatever_becomes_of_the_run() -> None:
    with ScriptedModel([call("crash"), call("echo", text="hi"), call("fly")], "done") as model:
        reply = await Agent(model=model, tools=[crash, echo]).chat("go")
    codes = [(failure.name, failure.code) for failure in reply.tool_failures]
    assert codes == [("crash", "TOOL_EXECUTION_FAILED"), ("fly", "TOOL_NOT_FOUND")]


async def test_a_run_without_its_critical_tool_fails_with_its_failures() -> None:
    full: list[str] = []

    def save() -> str:
        full.append("is full")
        raise OSError

    critical = foreign_tool("save_it", "Saves.", {}, save, critical=True, available=lambda: "".join(full))
    model = ScriptedModel(call("save_it"))
    with model, pytest.raises(RunFailed, match="save_it is critical") as caught:
        await Agent(model=model, tools=[critical]).chat("go")
    assert [failure.code for failure in caught.value.reply.tool_failures] == ["TOOL_UNAVAILABLE"]


# --- who may --------------------------------------------------------------------------------------------


@each_case(
    ("audience", "asker", "allowed"),
    [
        ("owner", Asker("1"), False),
        ("owner", Asker("1", is_owner=True), True),
        ("group_admin", Asker("1", role="admin"), True),
        ("group_admin", Asker("1", role="member"), False),
        ("everyone", Asker("1"), True),
    ],
)
async def test_a_tool_is_for_everyone_for_group_admins_or_for_owners(
    audience: str, asker: Asker, allowed: bool
) -> None:
    look, ran = counted(audience=audience)
    with ScriptedModel(call("look", text="hi"), "done") as model:
        reply = await Agent(model=model, tools=[look]).chat("go", asker=asker)
    assert results(reply)[0].code == ("" if allowed else "TOOL_DENIED")
    assert ran == ["hi"] * allowed


async def test_a_run_has_the_least_authority_of_everyone_whose_words_are_in_its_question() -> None:
    look, ran = counted(audience="owner")
    quoting = Asker("1", is_owner=True, authority=Audience.EVERYONE)
    with ScriptedModel(call("look", text="hi"), "done") as model:
        reply = await Agent(model=model, tools=[look]).chat("go", asker=quoting)
    assert results(reply)[0].content.endswith("[TOOL_DENIED]")
    assert ran == []


# --- the package --------------------------------------------------------------------------------------


async def test_decorated_functions_stay_callable_as_they_are() -> None:
    @tool
    def add(left: int, right: int = 1) -> int:
        """Adds."""
        return left + right

    assert add(2) == 3
    assert await echo("hi") == "hi"


def test_a_page_says_what_each_built_in_tool_may_touch() -> None:
    page = (Path(__file__).parents[2] / "docs" / "tools.md").read_text("utf-8")
    touched = page.partition("what it may touch |")[2].partition("\n\n")[0]
    assert [each.name for each in tools.discover() if f"| `{each.name}` |" not in touched] == []


OTHER_WEATHER = '''
from frostagent import tool


@tool(replace=True)
def get_weather(city: str) -> str:
    """The weather, from the window."""
    return f"{city}: see for yourself"
'''


async def test_a_tool_in_tools_dir_overrides_a_built_in_one_on_purpose(tmp_path: Path) -> None:
    (tmp_path / "weather.py").write_text(OTHER_WEATHER, "utf-8")
    found = discover(PackagedTools(tools), ToolFolder(tmp_path))
    assert found.problems == ()
    result = await Toolset(found.tools, clock=SystemClock()).execute("get_weather", {"city": "北京"})
    assert result.content == "北京: see for yourself"
