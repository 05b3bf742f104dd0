from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frostagent.types.arguments import Checked, Shape, parse_input, read_arguments
from frostagent.types.errors import InvalidArguments
from tests.cases import each_case


def read(schema: dict[str, Any], given: dict[str, Any], *, lenient: bool = True) -> Checked:
    """Mended by the schema, and checked by nobody."""
    shape = Shape.of({"type": "object", **schema})
    return read_arguments(given, shape=shape, check=lambda arguments: arguments, lenient=lenient)


def fix(node: dict[str, Any], value: Any) -> tuple[Any, tuple[str, ...]]:
    """One required parameter `x` of this schema, with this value."""
    checked = read({"properties": {"x": node}, "required": ["x"]}, {"x": value})
    return checked.plain["x"], checked.coerced


TEXT, WHOLE, NUMBER, SWITCH = ({"type": kind} for kind in ("string", "integer", "number", "boolean"))
POINT = {"type": "object", "properties": {"x": WHOLE, "y": WHOLE}, "required": ["x"]}


def test_json_in_a_text_is_read_as_strictly() -> None:
    assert fix(POINT, '{"x": NaN}') == ('{"x": NaN}', ())
    assert parse_input('{"input": NaN}') == {"input": '{"input": NaN}'}


@each_case(
    ("node", "value", "mended", "note"),
    [
        (WHOLE, "3", 3, "x: text -> integer"),
        (WHOLE, " -3 ", -3, "x: text -> integer"),
        (WHOLE, 2.0, 2, "x: number -> integer"),
        (WHOLE, "2.0", 2, "x: text -> integer"),
        (NUMBER, "1.5", 1.5, "x: text -> number"),
        (NUMBER, "2", 2, "x: text -> number"),
        (SWITCH, "true", True, "x: text -> boolean"),
        (SWITCH, "False", False, "x: text -> boolean"),
        (TEXT, 10001, "10001", "x: number -> string"),
        (POINT, '{"x": 1}', {"x": 1}, "x: text -> object"),
        ({"type": "array", "items": WHOLE}, "[1, 2]", [1, 2], "x: text -> array"),
        ({"type": "array", "items": TEXT}, "a", ["a"], "x: text -> array"),
        ({"type": "array", "items": POINT}, {"x": 1}, [{"x": 1}], "x: object -> array"),
        ({"type": "array", "items": WHOLE}, 7, [7], "x: number -> array"),
        ({"type": ["integer", "null"]}, "null", None, "x: text -> null"),
        ({"anyOf": [WHOLE, {"type": "null"}]}, "4", 4, "x: text -> integer"),
    ],
)
def test_what_can_mean_one_thing_only_is_taken_and_recorded(
    node: dict[str, Any], value: Any, mended: Any, note: str
) -> None:
    assert fix(node, value) == (mended, (note,))
    assert type(fix(node, value)[0]) is type(mended)


@each_case(
    ("node", "value"),
    [
        (TEXT, True),
        (TEXT, ["a"]),
        (POINT, "[1]"),
        (POINT, "{"),
        ({"type": "array", "items": WHOLE}, "many"),
        ({"type": ["integer", "boolean"]}, "1"),
        ({"anyOf": [WHOLE, TEXT]}, True),
        ({"oneOf": [POINT, {"type": "array", "items": WHOLE}]}, '{"x": 1}'),
        ({}, "anything"),
        ({"$ref": "#/nowhere"}, "3"),
    ],
)
def test_what_is_wrong_or_a_matter_of_choice_is_left_as_it_is(node: dict[str, Any], value: Any) -> None:
    assert fix(node, value) == (value, ())


@each_case(
    ("node", "value"),
    [
        (WHOLE, 2.5),
        (WHOLE, "2.5"),
        (WHOLE, "many"),
        (WHOLE, "1_000"),
        (WHOLE, True),
        (WHOLE, "9" * 5000),
        (NUMBER, "nan"),
        (NUMBER, "1e999"),
        (NUMBER, float("inf")),
        (SWITCH, "yes"),
        (SWITCH, 1),
    ],
)
def test_what_a_check_would_guess_at_is_refused_though_it_guesses(node: dict[str, Any], value: Any) -> None:
    with pytest.raises(InvalidArguments, match=rf"^x\.y: must be of the type {node['type']}, got ") as caught:
        fix({"type": "object", "properties": {"y": node}}, {"y": value})
    assert len(caught.value.fields) == 1


def test_mending_goes_down_into_objects_lists_mappings_and_references() -> None:
    schema = {
        "properties": {
            "points": {"type": "array", "items": {"$ref": "#/$defs/point"}},
            "by_name": {"type": "object", "additionalProperties": WHOLE},
        },
        "$defs": {"point": POINT},
    }
    checked = read(schema, {"points": [{"x": "1"}, {"x": 2, "y": "3"}], "by_name": {"a": "4"}})
    assert checked.plain == {"points": [{"x": 1}, {"x": 2, "y": 3}], "by_name": {"a": 4}}
    assert checked.coerced == (
        "points.0.x: text -> integer",
        "points.1.y: text -> integer",
        "by_name.a: text -> integer",
    )


def test_a_schema_that_goes_round_in_circles_mends_nothing_and_ends() -> None:
    assert read({"properties": {"x": {"$ref": "#/properties/x"}}}, {"x": "3"}).plain == {"x": "3"}


def test_null_for_a_parameter_that_may_be_left_out_leaves_it_out_unless_it_takes_null() -> None:
    schema = {"properties": {"a": WHOLE, "b": {"type": "integer", "nullable": True}, "c": WHOLE}, "required": ["c"]}
    checked = read(schema, {"a": None, "b": None, "c": None})
    assert (checked.plain, checked.coerced) == ({"b": None, "c": None}, ("a: null left out",))


def test_unknown_keys_are_named_to_who_is_lenient_and_refused_by_the_others() -> None:
    schema = {"properties": {"city": TEXT, "at": POINT}}
    given = {"city": "Rome", "citty": "Rome", "at": {"x": 1, "z": 2}}
    checked = read(schema, given)
    assert (checked.plain, checked.unknown) == ({"city": "Rome", "at": {"x": 1}}, ("citty", "at.z"))
    with pytest.raises(InvalidArguments) as caught:
        read(schema, given, lenient=False)
    assert caught.value.fields == (
        'citty: no such field, leave it out; did you mean "city"?',
        "at.z: no such field, leave it out",
    )
    assert caught.value.details == {"family": "TOOL_EXECUTION_FAILED", "fields": list(caught.value.fields)}


def test_a_schema_that_takes_any_key_knows_no_unknown_one() -> None:
    assert read({"properties": {"a": TEXT}, "additionalProperties": True}, {"b": 1}).plain == {"b": 1}
    assert read({"properties": {"any": {"type": "object"}}}, {"any": {"k": 1}}).unknown == ()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("xyz"), inner, max_size=3),
    max_leaves=6,
)
NODES = st.sampled_from(
    [TEXT, WHOLE, NUMBER, SWITCH, POINT, {"type": "array", "items": WHOLE}, {"type": ["string", "null"]}]
)


@given(st.dictionaries(st.sampled_from("xyz"), NODES), st.dictionaries(st.sampled_from("xyzq"), JSON))
def test_mending_is_json_again_and_mends_nothing_the_second_time(nodes: dict[str, Any], given_: dict[str, Any]) -> None:
    try:
        once = read({"properties": nodes}, given_)
    except InvalidArguments:
        return
    twice = read({"properties": nodes}, json.loads(json.dumps(once.plain)))
    assert (twice.plain, twice.coerced, twice.unknown) == (once.plain, (), ())
