from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum, StrEnum
from functools import partial
from types import GenericAlias
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from frostagent.types.errors import InvalidArguments
from frostagent.types.schema import (
    KEPT,
    READ,
    Signature,
    UnsuitableType,
    describe_function,
    read_signature,
)
from tests.cases import each_case


class Context:
    """Stands for the parameter that is not the model's."""


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


class Level(Enum):
    LOW = 1
    HIGH = 2


class Point(BaseModel):
    """A place on the map."""

    x: int
    y: int = 0


class Route(BaseModel):
    start: Point
    stops: list[Point] = []
    end: Point | None = None


class Tree(BaseModel):
    children: list[Tree] = []


class Chicken(BaseModel):
    egg: Egg | None = None


class Egg(BaseModel):
    chicken: Chicken | None = None


class Socket:
    """Not made of JSON."""


class Cat(BaseModel):
    kind: Literal["cat"]


class Dog(BaseModel):
    kind: Literal["dog"]


def function_of(annotation: Any, default: Any = ...) -> Callable[..., Any]:
    """A function with a parameter `value` of this type, and another one."""

    def required(value: Any, other: str = "") -> None: ...

    def optional(value: Any = default, other: str = "") -> None: ...

    function = required if default is ... else optional
    function.__annotations__ = {"value": annotation, "other": str}
    return function


def read(function: Callable[..., Any]) -> Signature:
    return read_signature(function, skip=Context)


def parameter(annotation: Any, default: Any = ...) -> tuple[dict[str, Any], bool]:
    """The schema of such a parameter, and whether it is required."""
    schema = read(function_of(annotation, default)).schema()
    return schema["properties"]["value"], "value" in schema.get("required", [])


def check(annotation: Any, value: Any, default: Any = ...) -> Any:
    return read(function_of(annotation, default)).check({"value": value})["value"]


@each_case(
    ("annotation", "schema"),
    [
        (str, {"type": "string"}),
        (int, {"type": "integer"}),
        (float, {"type": "number"}),
        (bool, {"type": "boolean"}),
        (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}),
        (Literal["a"], {"type": "string", "enum": ["a"]}),
        (Literal[1, 2], {"type": "integer", "enum": [1, 2]}),
        (Colour, {"type": "string", "enum": ["red", "blue"]}),
        (Level, {"type": "integer", "enum": [1, 2]}),
        (list[str], {"type": "array", "items": {"type": "string"}}),
        (list[Literal["a"]], {"type": "array", "items": {"type": "string", "enum": ["a"]}}),
        (list[list[int]], {"type": "array", "items": {"type": "array", "items": {"type": "integer"}}}),
        (tuple[int, ...], {"type": "array", "items": {"type": "integer"}}),
        (dict[str, str], {"type": "object"}),
        (dict[str, Any], {"type": "object"}),
        (Annotated[int, Field(ge=1, le=5)], {"type": "integer", "minimum": 1, "maximum": 5}),
        (Annotated[float, Field(gt=0, lt=1)], {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}),
        (
            Annotated[str, Field(min_length=1, max_length=9, pattern="^a")],
            {"type": "string", "minLength": 1, "maxLength": 9, "pattern": "^a"},
        ),
        (
            Annotated[list[int], Field(min_length=1, max_length=3)],
            {"type": "array", "items": {"type": "integer"}, "minItems": 1, "maxItems": 3},
        ),
        (Annotated[str, Field(description="the city")], {"type": "string", "description": "the city"}),
    ],
)
def test_a_type_has_a_flat_schema_and_is_required(annotation: Any, schema: dict[str, Any]) -> None:
    assert parameter(annotation) == (schema, True)


@each_case(
    ("annotation", "default", "schema"),
    [
        (int, 5, {"type": "integer", "default": 5}),
        (str, "", {"type": "string", "default": ""}),
        (bool, False, {"type": "boolean", "default": False}),
        (Colour, Colour.RED, {"type": "string", "enum": ["red", "blue"], "default": "red"}),
        (list[int], [1], {"type": "array", "items": {"type": "integer"}, "default": [1]}),
        (int | None, None, {"type": "integer"}),
        (int | None, 3, {"type": "integer", "default": 3}),
        (Literal["a", "b"] | None, None, {"type": "string", "enum": ["a", "b"]}),
        (list[str] | None, None, {"type": "array", "items": {"type": "string"}}),
        (Annotated[str, Field(max_length=5)] | None, None, {"type": "string", "maxLength": 5}),
    ],
)
def test_a_default_makes_it_optional_and_null_is_never_offered(
    annotation: Any, default: Any, schema: dict[str, Any]
) -> None:
    assert parameter(annotation, default) == (schema, False)


def test_models_inside_models_are_written_out_where_they_stand() -> None:
    point = {
        "type": "object",
        "description": "A place on the map.",
        "properties": {"x": {"type": "integer"}, "y": {"type": "integer", "default": 0}},
        "required": ["x"],
    }
    schema, _ = parameter(Route)
    assert schema["properties"] == {
        "start": point,
        "stops": {"type": "array", "items": point, "default": []},
        "end": point,
    }
    assert parameter(Point | None, None)[0] == point


ONE_OF = {"anyOf": [{"type": "integer"}, {"type": "string"}]}


@each_case(
    ("annotation", "schema"),
    [
        (int | str, ONE_OF),
        (int | str | None, ONE_OF),
        (list[int | str], {"type": "array", "items": ONE_OF}),
        (list[int] | int, {"anyOf": [{"type": "array", "items": {"type": "integer"}}, {"type": "integer"}]}),
        (Literal["a", 1], {"anyOf": [{"type": "string", "enum": ["a"]}, {"type": "integer", "enum": [1]}]}),
        (Any, {}),
        (object, {}),
        (list, {"type": "array", "items": {}}),
        (list[Any], {"type": "array", "items": {}}),
        (tuple[int, int], {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 2}),
        (tuple[int, str], {"type": "array", "items": ONE_OF, "minItems": 2, "maxItems": 2}),
    ],
)
def test_a_parameter_of_several_types_says_so(annotation: Any, schema: dict[str, Any]) -> None:
    assert parameter(annotation) == (schema, True)


def test_a_union_of_models_offers_each_of_them() -> None:
    schema, _ = parameter(Annotated[Cat | Dog, Field(discriminator="kind")])
    assert [each["properties"]["kind"]["enum"] for each in schema["anyOf"]] == [["cat"], ["dog"]]


@each_case(
    ("annotation", "given", "taken"),
    [
        (int | str, 5, 5),
        (int | str, "5", "5"),
        (Decimal, "0.10", Decimal("0.10")),
        (Decimal, 3, Decimal(3)),
        (tuple[int, str], [1, "a"], (1, "a")),
        (Any, {"a": [1]}, {"a": [1]}),
        (Annotated[Cat | Dog, Field(discriminator="kind")], {"kind": "dog"}, Dog(kind="dog")),
        (Literal["a", 1], 1, 1),
    ],
)
def test_an_argument_of_several_types_keeps_its_own(annotation: Any, given: Any, taken: Any) -> None:
    found = check(annotation, given)
    assert (found, type(found)) == (taken, type(taken))


@each_case(
    "annotation",
    [
        None,
        Tree,
        list[Tree],
        Chicken,
        dict[str, Point],
        dict[str, list[int]],
        dict[str, int | str],
        Callable[[], int],
        Iterator,
        Iterator[int],
        Socket,
    ],
)
def test_what_has_no_schema_is_refused_when_the_tool_is_defined(annotation: Any) -> None:
    with pytest.raises(UnsuitableType):
        parameter(annotation)


def test_a_refusal_names_the_tool_and_the_place() -> None:
    async def paint(points: list[dict[str, list[int]]]) -> None: ...

    with pytest.raises(UnsuitableType, match=r"paint_arguments\.points\[\]: a mapping may hold plain values"):
        read(paint).schema()


def test_a_tool_without_parameters_has_an_empty_object() -> None:
    def ping(context: Context) -> None: ...

    assert read(ping).schema() == {"type": "object", "properties": {}}


def no_type(value: int) -> None: ...


no_type.__annotations__.clear()


def any_number(*values: int) -> None: ...


def any_names(**values: int) -> None: ...


def no_name(value: int, /) -> None: ...


def private_name(_value: int) -> None: ...


def context_last(value: int, context: Context) -> None: ...


def context_by_name(*, context: Context) -> None: ...


@each_case("function", [no_type, any_number, any_names, no_name, private_name, context_last, context_by_name])
def test_a_function_that_could_not_be_called_by_name_is_refused(function: Callable[..., Any]) -> None:
    with pytest.raises(UnsuitableType):
        read(function)


def test_the_docstring_tells_what_a_tool_does_and_what_each_parameter_means() -> None:
    def find(context: Context, city: str, days: int = 1, unit: str = "c") -> None:
        """Looks the weather up,
        for some days.

        Use it for weather only.

        Args:
            city: The city, as people
                call it: "北京".
            days: How many: at most 7.

        Returns:
            nothing: of this is for the model.
        """

    description, arguments = describe_function(find)
    assert description == "Looks the weather up, for some days. Use it for weather only."
    assert arguments == {"city": 'The city, as people call it: "北京".', "days": "How many: at most 7."}
    properties = read(find).schema()["properties"]
    assert list(properties) == ["city", "days", "unit"]
    assert properties["days"] == {"type": "integer", "description": "How many: at most 7.", "default": 1}
    assert "description" not in properties["unit"]


def test_the_docstring_of_the_function_wins_over_the_annotation_and_the_model() -> None:
    def go(to: Annotated[str, Field(description="from the annotation")], via: Point, on: Point | None = None) -> None:
        """Goes.

        Args:
            to: Where to.
            via: The place between.
        """

    properties = read(go).schema()["properties"]
    assert [properties[name]["description"] for name in ("to", "via", "on")] == [
        "Where to.",
        "The place between.",
        "A place on the map.",
    ]


def test_a_function_without_a_docstring_has_no_description() -> None:
    assert describe_function(any_number) == ("", {})


@each_case(
    ("annotation", "given", "taken"),
    [
        (int, "3", 3),
        (int, 3.0, 3),
        (float, "1.5", 1.5),
        (bool, "true", True),
        (str, 12345, "12345"),
        (Colour, "red", Colour.RED),
        (Level, 2, Level.HIGH),
        (Point, {"x": "1"}, Point(x=1)),
        (list[Point], [{"x": 1, "y": 2}], [Point(x=1, y=2)]),
        (dict[str, str], {"a": 1}, {"a": "1"}),
        (int | None, None, None),
    ],
)
def test_arguments_become_what_the_function_wants(annotation: Any, given: Any, taken: Any) -> None:
    assert check(annotation, given) == taken


@each_case(
    ("annotation", "given", "line"),
    [
        (int, "many", "value: Input should be a valid integer, unable to parse string as an integer, got 'many'"),
        (int, 3.5, "value: Input should be a valid integer, got a number with a fractional part, got 3.5"),
        (int, None, "value: Input should be a valid integer, got None"),
        (Literal["a", "b"], "c", "value: Input should be 'a' or 'b', got 'c'"),
        (list[int], [1, "x"], "value.1: Input should be a valid integer, unable to parse string as an integer"),
        (Point, {}, "value.x: required"),
        (Route, {"start": {"x": "?"}}, "value.start.x: Input should be a valid integer"),
        (Annotated[int, Field(le=5)], 6, "value: Input should be less than or equal to 5, got 6"),
        (Annotated[str, Field(min_length=1)], "", "value: String should have at least 1 character, got ''"),
    ],
)
def test_a_wrong_argument_has_its_line(annotation: Any, given: Any, line: str) -> None:
    with pytest.raises(InvalidArguments) as caught:
        check(annotation, given)
    (field,) = caught.value.fields
    assert field.startswith(line)
    assert str(caught.value) == field


def test_every_wrong_field_is_told_at_once() -> None:
    def go(to: str, days: int, unit: str = "c") -> None: ...

    with pytest.raises(InvalidArguments) as caught:
        read(go).check({"days": "x", "speed": 3})
    assert [field.partition(":")[0] for field in caught.value.fields] == ["to", "days", "speed"]
    assert caught.value.fields[2] == "speed: no such field, leave it out"


def test_a_long_wrong_value_is_told_shortly() -> None:
    with pytest.raises(InvalidArguments) as caught:
        check(int, "x" * 10_000)
    assert len(str(caught.value)) < 200


def test_defaults_are_filled_in_and_never_shared() -> None:
    signature = read(function_of(list[int], []))
    signature.check({})["value"].append(1)
    assert signature.check({})["value"] == []


PLAIN = st.sampled_from([str, int, float, bool, Literal["a", "b"], Colour, Annotated[int, Field(ge=0)]])
TYPES = st.recursive(
    PLAIN,
    lambda inner: inner.map(lambda kind: GenericAlias(list, (kind,))) | inner.map(lambda kind: kind | None),
    max_leaves=4,
)


def nodes(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield schema
    for child in schema.get("properties", {}).values():
        yield from nodes(child)
    if "items" in schema:
        yield from nodes(schema["items"])


@given(TYPES, st.sampled_from([Route, Point]))
def test_a_schema_holds_only_what_every_vendor_reads(annotation: Any, model: Any) -> None:
    def go(one: Any, two: Any, three: Any = None) -> None: ...

    go.__annotations__ = {"one": annotation, "two": model, "three": annotation | None}
    schema = read(go).schema()
    assert json.loads(json.dumps(schema)) == schema
    for node in nodes(schema):
        assert set(node) <= KEPT
        assert isinstance(node["type"], str)
        assert node["type"] != "array" or "items" in node
        assert "anyOf" not in node


def test_for_reading_a_schema_also_tells_null_and_other_keys() -> None:
    def find(place: Point | None = None, by_name: dict[str, int] | None = None) -> None: ...

    signature = read(find)
    reading = signature.schema(READ)
    assert reading["properties"]["place"]["nullable"]
    assert reading["properties"]["by_name"]["additionalProperties"] == {"type": "integer"}
    assert reading["additionalProperties"] is False
    assert "nullable" not in str(signature.schema())


# --- everything that can be called ----------------------------------------------------------------


@dataclass
class Order:
    """What somebody wants."""

    dish: str
    count: int = 1


class Kitchen:
    """Cooks."""

    def cook(self, dish: str, count: int = 1) -> str:
        """Cooks a dish.

        Args:
            dish: Which one.
        """
        return f"{count} {dish}"

    def __call__(self, dish: str) -> str:
        return self.cook(dish)


def test_the_fields_of_an_only_model_are_the_arguments() -> None:
    def order(what: Order) -> None:
        """Orders."""

    def draw(context: Context, point: Point) -> None:
        """Draws."""

    ordered, drawn = read(order), read(draw)
    assert ordered.schema() == {
        "type": "object",
        "properties": {"dish": {"type": "string"}, "count": {"type": "integer", "default": 1}},
        "required": ["dish"],
    }
    assert ordered.check({"dish": "tea"}) == {"what": Order("tea", 1)}
    assert (drawn.wants_context, drawn.check({"x": 1})) == (True, {"point": Point(x=1)})
    with pytest.raises(InvalidArguments) as caught:
        ordered.check({"count": "many"})
    assert [field.partition(":")[0] for field in caught.value.fields] == ["dish", "count"]


def test_a_model_that_may_be_left_out_is_an_argument_of_its_own() -> None:
    def find(near: Point = Point(x=0)) -> None: ...  # noqa: B008  # a default that is a model is what this is about

    assert list(read(find).schema()["properties"]) == ["near"]


@each_case(
    ("function", "name", "parameters"),
    [
        (Kitchen().cook, "cook", ["dish", "count"]),
        (Kitchen(), "kitchen", ["dish"]),
        (partial(Kitchen().cook, count=3), "cook", ["dish"]),
        (partial(Kitchen().cook, "tea"), "cook", ["count"]),
        (partial(partial(Kitchen().cook, "tea"), count=3), "cook", []),
    ],
)
def test_whatever_can_be_called_is_read(function: Callable[..., Any], name: str, parameters: list[str]) -> None:
    signature = read(function)
    assert signature.name == name
    assert signature.description == ("Cooks." if name == "kitchen" else "Cooks a dish.")
    assert list(signature.schema()["properties"]) == parameters


def test_a_type_that_is_imported_for_type_checkers_only_is_named() -> None:
    def go(to: int) -> None: ...

    go.__annotations__["to"] = "Somewhere"
    with pytest.raises(UnsuitableType, match="'Somewhere' is no name of its module at run time"):
        read(go)
    with pytest.raises(UnsuitableType, match="its parameters cannot be read"):
        read(iter)
