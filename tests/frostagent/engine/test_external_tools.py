from __future__ import annotations

import json
from collections.abc import Callable
from enum import Enum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frostagent.engine.external_tools import as_tool, class_tool, foreign_tool, our_name
from frostagent.engine.tool_execution import run_body, unavailable_reason
from frostagent.types.errors import InvalidArguments
from frostagent.types.schema import UnsuitableType
from frostagent.types.tools import NAME, Tool, ToolContext
from frostagent.types.traits import SideEffects, ToolType
from tests.cases import each_case
from tests.fakes import tool_context

WEATHER = {
    "type": "object",
    "properties": {
        "location": {"type": "string", "description": "City name"},
        "unit": {"type": "string", "enum": ["celsius", "fahrenheit"], "default": "celsius"},
        "days": {"type": "array", "items": {"type": "object", "properties": {"n": {"type": "integer", "default": 1}}}},
    },
    "required": ["location"],
}
INPUT = {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]}


def look_up(location: str, unit: str = "", days: Any = None) -> str:
    return f"{location} {unit} {days}"


def weather(execute: Callable[..., Any] = look_up, **declared: Any) -> Tool:
    return foreign_tool("get_weather", "Looks.", WEATHER, execute, **declared)


async def call(tool: Tool, raw: str) -> object:
    return await run_body(tool, tool_context(), tool.read(raw).arguments)


async def test_a_tool_of_a_schema_from_outside_gets_its_arguments_mended_validated_and_with_defaults() -> None:
    assert await call(weather(), '{"location": 5, "days": {}}') == "5 celsius [{'n': 1}]"
    assert weather().spec.parameters == WEATHER


async def test_references_into_the_schema_are_followed_from_its_top_and_for_defaults() -> None:
    schema = {
        "$ref": "#/$defs/query",
        "$defs": {
            "query": {
                "properties": {
                    "n": {"type": "integer"},
                    "unit": {"$ref": "#/$defs/a~1unit"},
                    "at": {"$ref": "#/$defs/place"},
                },
                "required": ["n"],
            },
            "a/unit": {"type": "string", "default": "c"},
            "place": {"type": "object", "properties": {"floor": {"type": "integer", "default": 5}}},
        },
    }

    def find(**given: Any) -> object:
        return given

    tool = foreign_tool("find_it", "Finds.", schema, find)
    assert await call(tool, '{"n": "3", "at": {}}') == {"n": 3, "unit": "c", "at": {"floor": 5}}


@each_case(
    ("schema", "fits", "wrong"),
    [
        (
            {"properties": {"a": {}}, "patternProperties": {"^x_": {"type": "string"}}, "additionalProperties": False},
            '{"a": 1, "x_1": "v"}',
            '{"a": 1, "y_1": "v"}',
        ),
        (
            {"properties": {"a": {}}, "oneOf": [{"required": ["url"]}, {"required": ["path"]}]},
            '{"a": 1, "url": "x"}',
            '{"a": 1, "uri": "x"}',
        ),
    ],
)
def test_where_properties_are_not_all_there_is_the_schema_says_what_fits(
    schema: dict[str, Any], fits: str, wrong: str
) -> None:
    tool = foreign_tool("find_it", "Finds.", schema, None)
    assert tool.read(fits).plain == json.loads(fits)
    with pytest.raises(InvalidArguments):
        tool.read(wrong)


def test_declarations_are_those_of_our_own_tools() -> None:
    assert weather(side_effects="read", idempotent=True).side_effects is SideEffects.READ
    with pytest.raises(ValueError, match="sometimes"):
        weather(permission="sometimes")


@each_case(
    "schema",
    [{"type": "array"}, {"type": "object", "properties": {"a": {"type": "wrong"}}}, {"properties": {"a": {1}}}],
)
def test_what_is_no_schema_of_an_object_is_refused_where_the_tool_is_defined(schema: dict[str, Any]) -> None:
    with pytest.raises(UnsuitableType):
        foreign_tool("odd", "Odd.", schema, look_up)


def test_a_schema_that_says_nothing_has_no_parameters() -> None:
    tool = foreign_tool("ping", "", {}, lambda: "pong")
    assert (tool.spec.parameters, tool.description) == ({"type": "object", "properties": {}}, "ping")


# --- bodies ---------------------------------------------------------------------------------------


async def test_a_body_may_take_its_arguments_by_name_as_a_dict_or_as_json_and_the_context() -> None:
    async def by_dict(args: dict[str, Any]) -> str:
        return f"{args['location']} {args['unit']}"

    def by_text(args: str) -> str:
        return str(json.loads(args)["unit"])

    def with_context(context: ToolContext, location: str, **rest: Any) -> str:
        return f"{context.call_id} {location} {sorted(rest)}"

    assert await call(weather(by_dict), '{"location": "Rome"}') == "Rome celsius"
    assert await call(weather(by_text), '{"location": "Rome"}') == "celsius"
    assert await call(weather(with_context), '{"location": "Rome"}') == "c0 Rome ['unit']"


def test_a_body_whose_parameters_are_not_the_schemas_is_refused() -> None:
    with pytest.raises(UnsuitableType, match="execute takes a, b"):
        weather(lambda a, b: None)
    with pytest.raises(UnsuitableType, match="execute takes nothing"):
        weather(lambda: None)


@each_case("raw", ["hello", '{"input": "hello"}', '{"text": "hello"}'])
async def test_a_tool_with_one_text_called_input_takes_raw_text(raw: str) -> None:
    def echo(what: str) -> str:
        return f"ECHO:{what}"

    expected = raw if raw.startswith('{"text') else "hello"
    assert await call(foreign_tool("echo", "Echoes.", INPUT, echo), raw) == f"ECHO:{expected}"


# --- objects --------------------------------------------------------------------------------------


class Echo:
    """As in seeds/002: methods, and one text."""

    def name(self) -> str:
        return "echo"

    def description(self) -> str:
        return "Echoes the input."

    def schema(self) -> dict[str, Any]:
        return INPUT

    async def execute(self, input: str) -> str:  # noqa: A002  # the word of the document
        return "ECHO:" + input


class Dice:
    """As in seeds/004: info, definition, a dict, availability with a reason."""

    there = True

    def info(self) -> dict[str, str]:
        return {"name": "rollDice", "description": "Rolls N dice."}

    def definition(self) -> dict[str, Any]:
        return {"parameters": {"type": "object", "properties": {"count": {"type": "integer"}}}}

    def execute(self, args: dict[str, Any]) -> str:
        return f"rolled {args['count']}"

    def available(self) -> tuple[bool, str]:
        return self.there, "" if self.there else "no dice"


class Plain:
    """Attributes."""

    name = "plain"
    description = "Plain."
    parameters = WEATHER
    available = True

    @staticmethod
    def execute(location: str, unit: str, days: Any = ()) -> str:
        return location + unit


async def test_an_object_that_says_all_about_itself_becomes_a_tool() -> None:
    assert await call(class_tool(Echo()), "hi") == "ECHO:hi"
    assert await call(class_tool(Plain()), '{"location": "Rome"}') == "Romecelsius"


async def test_an_object_may_say_whether_it_is_available_and_why_not() -> None:
    dice = Dice()
    tool = class_tool(dice, side_effects="none")
    assert (tool.name, tool.origin, unavailable_reason(tool)) == ("roll_dice", "rollDice", "")
    assert await call(tool, '{"count": "2"}') == "rolled 2"
    dice.there = False
    assert unavailable_reason(tool) == "no dice"


def test_an_object_without_a_name_or_a_body_is_told_apart() -> None:
    with pytest.raises(UnsuitableType, match="object has no name"):
        class_tool(object())

    class Bodiless:
        name, description, execute = "ghost", "Nothing.", None

    assert unavailable_reason(class_tool(Bodiless())) == "has no body"


class Misnamed:
    """Its body has another name."""

    name, description = "ghost", "Nothing."

    def excute(self) -> str:
        return "boo"


class Helper:
    """Is made a tool by itself."""

    name = "helper"

    def as_tool(self, name: str, description: str) -> None: ...


class Away:
    """Offers tools as a server does."""

    name = "away"

    def offered(self) -> tuple[()]:
        return ()


class Wordy:
    """Its body is a text."""

    name, description, execute = "ghost", "Nothing.", "boo"


@each_case(
    ("source", "told"),
    [
        (Misnamed(), "ghost: Misnamed has no execute, so it could never be run; is it excute?"),
        (Helper(), "helper: Helper has no execute, so it could never be run. An agent becomes a tool by its as_tool("),
        (Away(), "away: Away has no execute, so it could never be run. A server goes into the tools of an Agent, not"),
        (Wordy(), "ghost: execute is to be a function, not str"),
        (Echo, "Echo is a class. Give an object of it: Echo()"),
        (Dice, "Dice is a class. Give an object of it: Dice()"),
        (object(), "object has no name as text, so it is no tool: give a Tool, a typed function or"),
    ],
)
def test_what_could_never_be_run_is_refused_where_the_tool_is_defined(source: object, told: str) -> None:
    with pytest.raises(UnsuitableType) as caught:
        class_tool(source)
    assert str(caught.value).startswith(told)


class Kind(Enum):
    """Types of tools, as somebody else has them."""

    GO = "go"


class Told(Dice):
    """Two texts: one for the model, one for people."""

    kind: object = Kind.GO

    def info(self) -> dict[str, Any]:
        return {"name": "rollDice", "type": self.kind, "description": "For people."}

    def definition(self) -> dict[str, Any]:
        return {**super().definition(), "name": "rollDice", "description": "For the model."}


def test_the_model_reads_the_definition_and_people_the_info() -> None:
    tool = class_tool(Told())
    assert (tool.spec.description, tool.summary, tool.about) == ("For the model.", "For people.", "For people.")
    assert class_tool(Told(), summary="Ours.").about == "Ours."
    assert class_tool(Dice()).spec.description == class_tool(Dice()).about == "Rolls N dice."


@each_case(("kind", "shown"), [(Kind.GO, "go"), ("cli", ToolType.CLI), (None, ToolType.FUNCTION)])
def test_the_type_of_an_info_is_the_tools(kind: object, shown: str) -> None:
    source = Told()
    source.kind = kind
    assert class_tool(source).type == shown
    assert class_tool(source, type="mine").type == "mine"


def test_a_tool_is_one_already_or_is_made_of_a_function_or_an_object() -> None:
    def add(left: int) -> int:
        """Adds."""
        return left

    tool = class_tool(Dice())
    assert as_tool(tool) is tool
    assert as_tool(add).name == "add"
    assert as_tool(Plain()).name == "plain"


# --- names ----------------------------------------------------------------------------------------


@each_case(
    ("foreign", "ours"),
    [
        ("search", "search"),
        ("getWeather", "get_weather"),
        ("get-weather", "get_weather"),
        ("server/Get.Weather", "server_get_weather"),
        ("HTTPGet", "httpget"),
    ],
)
def test_a_foreign_name_is_spelt_our_way(foreign: str, ours: str) -> None:
    assert our_name(foreign) == ours


def test_names_that_lose_letters_stay_apart() -> None:
    names = ["天气", "天", "2fast", "fast", "a" * 65, "a" * 66, "é"]
    assert len({our_name(name) for name in names}) == len(names)
    with pytest.raises(ValueError, match="needs a name"):
        our_name(" ")


@given(st.text(min_size=1).filter(str.strip))
def test_any_name_becomes_one_of_ours_and_stays_it(name: str) -> None:
    ours = our_name(name)
    assert NAME.fullmatch(ours)
    assert our_name(ours) == ours
