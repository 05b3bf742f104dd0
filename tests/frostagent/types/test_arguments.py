from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from frostagent.engine.external_tools import foreign_tool
from frostagent.types.arguments import parse_arguments, parse_by_schema, parse_input
from frostagent.types.errors import InvalidArguments
from frostagent.types.tools import tool
from frostagent.types.traits import SideEffects
from tests.cases import each_case


@each_case("raw", ["", "  ", "null", "{}"])
def test_no_arguments_at_all_is_an_empty_object(raw: str) -> None:
    assert parse_arguments(raw) == {}


@each_case("raw", ['"{\\"a\\": 1}"', ' {"a": 1} '])
def test_an_object_is_read_also_where_it_came_as_text_once_more(raw: str) -> None:
    assert parse_arguments(raw) == {"a": 1}


WRAPPED = [
    '{"arguments": {"city": "Rome"}}',
    '{"arguments": "{\\"city\\": \\"Rome\\"}"}',
    '{"parameters": {"city": "Rome"}}',
    '{"name": "look", "arguments": {"city": "Rome"}}',
    "```json\n{'arguments': {'city': 'Rome'}}\n```",
]
"""What means the city and nothing else, for a tool `look` that takes one."""

CITY = {"type": "object", "properties": {"city": {"type": "string"}}}


@each_case("raw", WRAPPED)
def test_3_5_arguments_that_came_wrapped_are_taken_out(raw: str) -> None:
    given, notes = parse_by_schema(CITY, raw, name="look")
    assert given == {"city": "Rome"}
    assert notes[-1] in {"arguments: taken out of arguments", "arguments: taken out of parameters"}


@each_case(
    ("schema", "raw"),
    [
        ({"properties": {"arguments": {"type": "object"}}}, WRAPPED[0]),
        ({"properties": {"name": {"type": "string"}}}, WRAPPED[3]),
        (CITY | {"additionalProperties": True}, WRAPPED[0]),
        (CITY | {"patternProperties": {"": {}}}, WRAPPED[0]),
        ({"type": "object"}, WRAPPED[0]),
        (CITY, '{"arguments": {"city": "Rome"}, "days": 1}'),
        (CITY, '{"name": "other", "arguments": {"city": "Rome"}}'),
        (CITY, '{"arguments": [1]}'),
        (CITY, '{"arguments": "Rome"}'),
        (CITY, '{"arguments": null}'),
    ],
)
def test_3_5_what_may_be_the_tools_own_is_left(schema: dict[str, Any], raw: str) -> None:
    assert parse_by_schema(schema, raw, name="look") == (json.loads(raw), ())


def test_3_5_nothing_is_taken_out_for_a_tool_that_takes_nothing() -> None:
    assert parse_by_schema({"properties": {}}, '{"arguments": {}}', name="look")[0] == {}


@each_case("raw", ['{"city": "Rome"}{"city": "Rome"}', "{'city': 'Rome'}", *WRAPPED])
def test_a_mended_call_is_told_as_such_and_one_in_order_is_not(raw: str) -> None:
    for take in (
        foreign_tool("look", "Looks.", CITY, None, side_effects="external"),
        foreign_tool("look", "Looks.", CITY, None, side_effects="read"),
    ):
        checked = take.read(raw)
        assert checked.plain == {"city": "Rome"}
        assert checked.coerced
        assert checked.coerced[0].startswith("arguments: ")
        assert take.read('{"city": "Rome"}').coerced == ()


@each_case("raw", ['{"x": NaN}', '{"x": Infinity}', '{"x": {"y": [-Infinity]}}', '{"x": 1, "x": 2}'])
def test_what_is_no_json_is_refused_though_the_schema_would_take_it(raw: str) -> None:
    with pytest.raises(InvalidArguments, match="not valid JSON"):
        foreign_tool("take", "Takes.", {"properties": {"x": {}}}, None).read(raw)


@each_case("x", [float("nan"), float("inf"), [{"y": -float("inf")}]])
def test_a_number_that_json_does_not_have_is_refused_wherever_it_comes_from(x: object) -> None:
    for node in ({}, {"type": "number"} if isinstance(x, float) else {}):
        take = foreign_tool("take", "Takes.", {"properties": {"x": node}}, None)
        with pytest.raises(InvalidArguments, match=r"^x(\.0\.y)?: must be "):
            take.validate({"x": x})
    with pytest.raises(InvalidArguments, match=r"^x: must be a finite number$") as caught:
        foreign_tool("take", "Takes.", {"properties": {"x": {}}}, None).read('{"x": 1e999}')
    assert caught.value.fields == ("x: must be a finite number",)


@each_case(
    ("raw", "text"),
    [("hello", "hello"), ('{"input": "hi"}', "hi"), ('{"other": 1}', '{"other": 1}'), ("[1]", "[1]"), ("", "")],
)
def test_a_tool_of_one_text_takes_what_is_no_json_as_it_is(raw: str, text: str) -> None:
    assert parse_input(raw) == {"input": text}


def test_what_stands_beside_the_one_text_is_not_dropped_in_silence() -> None:
    take = foreign_tool(
        "take_it", "Takes a text.", {"properties": {"input": {"type": "string"}}}, None, side_effects="write"
    )
    with pytest.raises(InvalidArguments, match="dry_run: no such field"):
        take.read('{"input": "a", "dry_run": true}')
    assert replace(take, side_effects=SideEffects.READ).read('{"input": "a", "b": 1}').unknown == ("b",)


@each_case("raw", ['{"force": "yes"}', '{"force": 1}', '{"count": true}', '{"count": "1_000"}'])
def test_a_typed_function_gets_nothing_that_was_guessed(raw: str) -> None:
    @tool
    async def wipe(force: bool = False, count: int = 1) -> None:
        """Wipes."""

    with pytest.raises(InvalidArguments, match="must be of the type"):
        wipe.read(raw)


def test_an_infinite_number_fits_no_typed_function() -> None:
    @tool
    async def stretch(length: float) -> None:
        """Makes it longer."""

    with pytest.raises(InvalidArguments, match="length: Input should be a finite number"):
        stretch.read('{"length": 1e999}')
