"""Schemas as servers that enforce one take them."""

from __future__ import annotations

from typing import Any

import jsonschema
from hypothesis import given, settings

from frostagent.models.openai.answer_formats import MAX_NODES, strict_schema
from tests.cases import each_case
from tests.frostagent.openai import damage

TEXT, WHOLE, NONE = {"type": "string"}, {"type": "integer"}, {"type": "null"}


def closed(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


@each_case(
    ("schema", "strict"),
    [
        ({"type": "object", "properties": {"a": TEXT}}, closed(a=TEXT)),
        ({"type": "object", "properties": {}}, closed()),
        ({"type": "object", "title": "T", "properties": {"a": {**TEXT, "title": "A", "default": "x", "minLength": 1}}},
         closed(a=TEXT)),
        ({"type": "string", "format": "date", "pattern": "x", "description": "d"}, {**TEXT, "description": "d"}),
        ({"anyOf": [WHOLE, NONE], "default": None}, {"anyOf": [WHOLE, NONE]}),
        ({"type": ["integer", "null"], "minimum": 1}, {"anyOf": [WHOLE, NONE]}),
        ({"type": ["integer"]}, WHOLE),
        ({"enum": ["a", 1, None]}, {"anyOf": [{**TEXT, "enum": ["a"]}, {**WHOLE, "enum": [1]}, NONE]}),
        ({"const": True}, {"type": "boolean", "enum": [True]}),
        ({"allOf": [{"$ref": "#/$defs/n"}], "description": "d"}, {**WHOLE, "description": "d"}),
        ({"type": "array", "items": {"oneOf": [TEXT, {"$ref": "#/$defs/n"}]}},
         {"type": "array", "items": {"anyOf": [TEXT, WHOLE]}}),
    ],
)  # fmt: skip
def test_a_schema_says_what_is_enforced_and_no_more(schema: dict[str, Any], strict: dict[str, Any]) -> None:
    assert strict_schema({**schema, "$defs": {"n": WHOLE}}) == strict


@each_case(
    "schema",
    [
        {},
        True,
        {"type": "object"},
        {"type": "object", "additionalProperties": TEXT},
        {"type": "object", "properties": {"a": TEXT}, "additionalProperties": True},
        {"type": "object", "properties": {}, "patternProperties": {"^a": TEXT}},
        {"type": "object", "properties": {"a": TEXT}, "anyOf": [{"required": ["a"]}]},
        {"type": "array"},
        {"type": "array", "prefixItems": [TEXT, WHOLE]},
        {"type": "array", "items": {}},
        {"not": TEXT},
        {"enum": []},
        {"anyOf": []},
        {"type": []},
        {"enum": [[1]]},
        {"allOf": [TEXT, WHOLE]},
        {"type": "strange"},
        {"$ref": "#/$defs/nowhere"},
        {"$ref": "https://a.example/schema"},
        {"$ref": "#/$defs/tree"},
    ],
)
def test_what_cannot_be_said_strictly_is_not_said(schema: Any) -> None:
    tree = {"type": "object", "properties": {"left": {"$ref": "#/$defs/tree"}}}
    assert strict_schema({"type": "object", "properties": {"a": schema}, "$defs": {"tree": tree}}) is None


def test_a_schema_that_is_too_large_is_not_said() -> None:
    wide: dict[str, Any] = {"type": "object", "properties": {f"p{number}": TEXT for number in range(MAX_NODES)}}
    assert strict_schema(wide) is None
    del wide["properties"]["p0"]
    assert strict_schema(wide) is not None


@settings(deadline=None)
@given(damage.objects)
def test_any_schema_is_strict_or_not_said(schema: dict[str, Any]) -> None:
    strict = strict_schema(schema)
    if strict is not None:
        jsonschema.Draft202012Validator.check_schema(strict)
        assert strict_schema(strict) == strict
