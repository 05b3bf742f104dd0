"""Any schema comes out flat; a flat one comes out as it was."""

from __future__ import annotations

from typing import Any

import orjson
from hypothesis import given, settings

import tools
from frostagent.models.openai.dialects import GEMINI, OPENAI, PLAIN, Dialect
from frostagent.models.openai.tools import MAX_NODES, write_schema
from tests.cases import each_case
from tests.frostagent.openai import damage


def of(field: Any, dialect: Dialect = PLAIN, /, **root: Any) -> Any:
    """What becomes of the schema of one property."""
    return write_schema({"type": "object", "properties": {"a": field}, **root}, dialect)["properties"]["a"]


def test_our_own_tools_are_flat_already() -> None:
    for tool in tools.discover():
        assert write_schema(tool.spec.parameters, PLAIN) == tool.spec.parameters


@each_case("schema", [{}, {"type": "object"}, {"type": "string"}, {"properties": None}, {"$ref": "#"}])
def test_6_10_parameters_are_an_object_in_any_case(schema: dict[str, Any]) -> None:
    assert write_schema(schema, PLAIN) == {"type": "object", "properties": {}}


@each_case(
    ("field", "flat"),
    [
        ({"type": ["null", "integer"]}, {"type": "integer"}),
        ({"anyOf": [{"type": "null"}, {"type": "integer", "minimum": 1}]}, {"type": "integer", "minimum": 1}),
        ({"anyOf": [{"type": "string"}, {"type": "integer"}], "title": "t"}, {"type": "string", "title": "t"}),
        ({"oneOf": []}, {"type": "string"}),
        ({"allOf": [{"type": "object", "properties": {"x": {"type": "string"}}}, {"required": ["x"]}]},
         {"type": "object", "properties": {"x": {"type": "string"}}, "required": ["x"]}),
        ({"const": "yes"}, {"type": "string", "enum": ["yes"]}),
        ({"const": 5}, {"type": "integer", "enum": [5]}),
        ({"const": True}, {"type": "boolean", "enum": [True]}),
        ({"enum": [0.5]}, {"type": "number", "enum": [0.5]}),
        ({"type": "array"}, {"type": "array", "items": {"type": "string"}}),
        ({"items": {"type": ["integer", "null"]}}, {"type": "array", "items": {"type": "integer"}}),
        ({"type": "array", "items": [{"type": "integer"}]}, {"type": "array", "items": {"type": "string"}}),
        ({"properties": {"x": {}}, "required": ["x", "y"]},
         {"type": "object", "properties": {"x": {"type": "string"}}, "required": ["x"]}),
        ({"type": "object", "additionalProperties": {"$ref": "#/$defs/n"}},
         {"type": "object", "additionalProperties": {"type": "integer"}}),
        ({"$ref": "#/$defs/n", "description": "ours"}, {"type": "integer", "description": "ours"}),
        ({"$ref": "https://a.example/schema"}, {"type": "string"}),
        ({"$ref": "#/nowhere"}, {"type": "string"}),
        (True, {"type": "string"}),
        ({"type": "string", "strict": True, "nullable": True, "$comment": "x"}, {"type": "string"}),
    ],
)  # fmt: skip
def test_6_10_what_is_not_flat_is_said_more_loosely(field: Any, flat: dict[str, Any]) -> None:
    assert of(field, **{"$defs": {"n": {"type": "integer"}}}) == flat


TEXT, WHOLE, NONE = {"type": "string"}, {"type": "integer"}, {"type": "null"}
CAT = {"type": "object", "properties": {"kind": {"const": "cat"}, "lives": WHOLE}, "required": ["kind", "lives"]}
DOG = {"type": "object", "properties": {"kind": {"const": "dog"}, "tricks": TEXT}, "required": ["kind"]}
PET = {
    "type": "object",
    "properties": {"kind": {"type": "string", "enum": ["cat", "dog"]}, "lives": WHOLE, "tricks": TEXT},
    "required": ["kind"],
}


@each_case(
    ("field", "choice", "single"),
    [
        ({"anyOf": [WHOLE, TEXT]}, {"anyOf": [WHOLE, TEXT]}, TEXT),
        ({"oneOf": [WHOLE, TEXT, NONE], "description": "d"}, {"anyOf": [WHOLE, TEXT], "description": "d"},
         {"type": "string", "description": "d"}),
        ({"type": ["integer", "string"]}, {"anyOf": [WHOLE, TEXT]}, TEXT),
        ({"type": ["string", "integer"], "enum": ["a", 1]},
         {"anyOf": [{"type": "string", "enum": ["a"]}, {"type": "integer", "enum": [1]}]}, TEXT),
        ({"anyOf": [WHOLE, {"type": "number"}]}, {"anyOf": [WHOLE, {"type": "number"}]}, {"type": "number"}),
        ({"anyOf": [{"const": "a"}, {"const": "b"}]},
         {"anyOf": [{"type": "string", "enum": ["a"]}, {"type": "string", "enum": ["b"]}]},
         {"type": "string", "enum": ["a", "b"]}),
        ({"anyOf": [{"const": "a"}, TEXT]}, {"anyOf": [{"type": "string", "enum": ["a"]}, TEXT]}, TEXT),
        ({"anyOf": [{"type": "string", "minLength": 2}, WHOLE]},
         {"anyOf": [{"type": "string", "minLength": 2}, WHOLE]}, TEXT),
        ({"anyOf": [TEXT, TEXT]}, TEXT, TEXT),
        ({"anyOf": [{"type": "array", "items": WHOLE}, {"type": "array", "items": TEXT}]},
         {"anyOf": [{"type": "array", "items": WHOLE}, {"type": "array", "items": TEXT}]},
         {"type": "array", "items": TEXT}),
        ({"anyOf": [WHOLE, {"type": "array", "items": WHOLE}]},
         {"anyOf": [WHOLE, {"type": "array", "items": WHOLE}]},
         {"type": "integer", "description": "(or array)"}),
        ({"anyOf": [{"$ref": "#/$defs/cat"}, {"$ref": "#/$defs/dog"}]},
         {"anyOf": [of(CAT), of(DOG)]}, PET),
        ({"anyOf": [{"type": "boolean"}, WHOLE]}, {"anyOf": [{"type": "boolean"}, WHOLE]},
         {"type": "boolean", "description": "(or integer)"}),
        ({"type": "object", "properties": {"x": TEXT, "y": TEXT}, "anyOf": [{"required": ["x"]}, {"required": ["y"]}]},
         *[{"type": "object", "properties": {"x": TEXT, "y": TEXT}}] * 2),
    ],
)  # fmt: skip
def test_6_10_a_choice_loses_none_of_its_options(field: Any, choice: Any, single: Any) -> None:
    pets: dict[str, Any] = {"$defs": {"cat": CAT, "dog": DOG}}
    assert of(field, OPENAI, **pets) == choice
    assert of(field, **pets) == single


def test_6_10_the_parameters_themselves_are_no_choice() -> None:
    assert write_schema({"anyOf": [CAT, DOG]}, OPENAI) == write_schema({"anyOf": [CAT, DOG]}, PLAIN) == PET


def test_a_choice_that_holds_itself_ends() -> None:
    tree: dict[str, Any] = {"anyOf": [TEXT, {"type": "array", "items": {"$ref": "#/$defs/tree"}}]}
    lists = {"type": "array", "items": {"type": "object"}}
    assert of({"$ref": "#/$defs/tree"}, OPENAI, **{"$defs": {"tree": tree}}) == {"anyOf": [TEXT, lists]}


def test_6_10_a_property_may_be_called_like_a_word_of_schemas() -> None:
    schema = {"type": "object", "properties": {"title": {"type": "string"}, "const": {"type": "string"}}}
    assert write_schema(schema, GEMINI) == schema


def test_6_10_words_that_are_refused_are_left_out() -> None:
    field = {"type": "integer", "title": "A", "default": 1, "minimum": 0, "enum": [0, 1], "multipleOf": 1}
    schema = {"$schema": "x", "type": "object", "properties": {"a": field}, "additionalProperties": False}
    assert write_schema(schema, GEMINI) == {"type": "object", "properties": {"a": {"type": "integer", "minimum": 0}}}
    assert write_schema(schema, PLAIN) == {"type": "object", "properties": {"a": field}, "additionalProperties": False}


def test_a_schema_that_holds_itself_ends() -> None:
    tree = {"type": "object", "properties": {"left": {"$ref": "#/$defs/tree"}, "right": {"$ref": "#/$defs/tree"}}}
    flat = of({"$ref": "#/$defs/tree"}, **{"$defs": {"tree": tree}})
    assert flat["properties"]["left"] == {"type": "object"}


@each_case("names", ["a", "ab", "abcdefgh"])
def test_a_schema_that_grows_without_end_is_cut(names: str) -> None:
    steps = {
        f"s{n}": {"type": "object", "properties": {name: {"$ref": f"#/$defs/s{n + 1}"} for name in names}}
        for n in range(2000)
    }
    written = write_schema({"properties": {"a": {"$ref": "#/$defs/s0"}}, "$defs": steps}, PLAIN)
    assert str(written).count("'type'") < len(names) * 2 * MAX_NODES
    assert orjson.dumps(written)


@settings(deadline=None)
@given(damage.objects)
def test_a_flat_schema_comes_out_as_it_is(schema: dict[str, Any]) -> None:
    for dialect in (PLAIN, GEMINI, OPENAI):
        flat = write_schema(schema, dialect)
        assert write_schema(flat, dialect) == flat
