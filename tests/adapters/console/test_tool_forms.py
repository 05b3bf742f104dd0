from __future__ import annotations

import json
from typing import Any

from adapters.console.tools import MAX_FIELDS, arguments_of, fields_of
from tests.cases import each_case

SCHEMA = {
    "properties": {
        "city": {"type": "string", "description": "The place."},
        "days": {"type": "integer", "default": 3},
        "share": {"type": "number"},
        "units": {"type": "string", "enum": ["metric", "imperial"], "default": "metric"},
        "level": {"enum": [1, 2]},
        "picture": {"type": "boolean", "default": False},
        "more": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["city"],
}


def typed(**values: str) -> Any:
    """What a model would write, of what was typed into the fields of these arguments."""
    places = {name: f"a{place}" for place, name in enumerate(SCHEMA["properties"])}
    return json.loads(arguments_of(fields_of(SCHEMA, {places[name]: value for name, value in values.items()})))


def test_each_argument_has_a_field_of_its_kind_that_says_what_it_is_for() -> None:
    fields = {field.name: field for field in fields_of(SCHEMA, {})}
    assert {name: field.kind for name, field in fields.items()} == {
        "city": "text",
        "days": "number",
        "share": "number",
        "units": "choice",
        "level": "choice",
        "picture": "choice",
        "more": "json",
    }
    assert (fields["city"].about, fields["city"].is_needed, fields["city"].usual) == ("The place.", True, "")
    assert (fields["days"].usual, fields["units"].usual, fields["picture"].usual) == ("3", '"metric"', "false")
    assert not fields["days"].is_needed
    assert fields["units"].choices == ("metric", "imperial")
    assert fields["picture"].choices == (True, False)


def test_what_was_typed_has_the_types_of_the_schema_and_what_was_not_is_left_out() -> None:
    assert typed() == {}
    assert typed(city="3", days="3", share="0.5", units="1", level="0", picture="0", more='["雨"]') == {
        "city": "3",
        "days": 3,
        "share": 0.5,
        "units": "imperial",
        "level": 1,
        "picture": True,
        "more": ["雨"],
    }
    assert typed(picture="1") == {"picture": False}


@each_case("wrong", ["三", "[" * 50_000, "1e", "{"])
def test_what_is_no_value_of_its_kind_goes_on_as_it_was_typed(wrong: str) -> None:
    assert typed(days=wrong, more=wrong) == {"days": wrong, "more": wrong}
    assert typed(units="9") == {"units": "9"}


@each_case(
    "schema",
    [
        {"properties": {f"p{number}": {"type": "string"} for number in range(MAX_FIELDS + 1)}},
        {"properties": ["city"]},
        {"properties": {"city": True}},
    ],
)
def test_a_schema_that_makes_no_form_has_one_field_for_everything(schema: dict[str, Any]) -> None:
    (field,) = fields_of(schema, {})
    assert (field.name, field.kind, field.typed) == ("", "json", "{}")
    assert arguments_of(fields_of(schema, {"all": '{"p1": "x"}'})) == '{"p1": "x"}'


def test_a_tool_without_arguments_has_no_field() -> None:
    assert fields_of({"type": "object"}, {}) == ()
    assert arguments_of(()) == "{}"
