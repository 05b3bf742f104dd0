"""Tools from JSON schemas and from self-describing objects.

Schemas may use all of JSON Schema; the model adapter simplifies them for vendors. Arguments are
repaired by the schema's types, filled with its defaults, and validated by `jsonschema`
(`json_schemas.py`).
"""

from __future__ import annotations

import difflib
import hashlib
import inspect
import json
import re
from collections.abc import Callable, Mapping
from copy import deepcopy
from functools import partial
from types import FunctionType, MethodType
from typing import Any, get_type_hints

from typing_extensions import Unpack

from frostagent.types.arguments import INPUT, Shape, resolve_reference
from frostagent.types.schema import UnsuitableType
from frostagent.types.tools import (
    NAME,
    ForeignDeclarations,
    Tool,
    ToolContext,
    fields_of,
    make_tool,
)
from frostagent.types.traits import ToolType

LONGEST_NAME = 64
SPELT = re.compile(r"[A-Za-z][A-Za-z0-9_.:/ -]*")
"""Names that differ from ours only in case and separators."""

FORMS = (
    "give a Tool, a typed function or another callable, or an object with name, description, "
    "parameters and execute"
)

ADVICE = {
    "as_tool": "An agent becomes a tool by its as_tool(name, description).",
    "offered": "A server goes into the tools of an Agent, not into a Toolset.",
}
"""What to do with an object that has such a member, and is no tool."""


def our_name(foreign: str) -> str:
    """A foreign name in our alphabet: `getWeather` and `get-weather` become `get_weather`.

    A name that would lose letters, or is too long, ends in a short digest, to stay unique.
    `Tool.origin` keeps the foreign name. Raises ValueError for an empty one.
    """
    if NAME.fullmatch(foreign):
        return foreign
    if not foreign.strip():
        raise ValueError("a tool needs a name")
    spelt = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", foreign)
    name = re.sub(r"[^a-z0-9]+", "_", spelt.lower()).strip("_")
    if NAME.fullmatch(name) and SPELT.fullmatch(foreign):
        return name
    mark = hashlib.sha256(foreign.encode("utf-8", "surrogatepass")).hexdigest()[:6]
    name = name if name[:1].isalpha() else f"tool_{name}".rstrip("_")
    return f"{name[: LONGEST_NAME - len(mark) - 1].rstrip('_')}_{mark}"


def foreign_tool(
    name: str,
    description: str,
    parameters: Mapping[str, Any],
    execute: Callable[..., Any] | None,
    **declared: Unpack[ForeignDeclarations],
) -> Tool:
    """A tool from a JSON schema. `execute` gets its arguments as `pass_arguments` describes.

        foreign_tool("add", "Adds two numbers.", {"properties": {"a": {}, "b": {}}}, add)

    `declared` is as in `@tool`. Raises UnsuitableType unless the schema is valid and of an object,
    ValueError as `@tool` does.
    """
    from frostagent.engine.json_schemas import check_by_schema, validator_of  # noqa: PLC0415  # three megabytes that most do without

    schema = whole_schema(parameters, name)
    validator = validator_of(schema, name)
    raw_input = declared.pop("raw_input", takes_raw_input(schema))
    body, wants_context = (None, False) if execute is None else pass_arguments(execute, schema)
    mapped = our_name(name)
    return Tool(
        name=mapped,
        description=description.strip() or name,
        parameters=schema,
        shape=Shape.of(schema),
        check=lambda given: check_by_schema(validator, schema, given),
        function=body,
        wants_context=wants_context,
        raw_input=raw_input,
        origin="" if mapped == name else name,
        **fields_of(**declared),
    )


def class_tool(source: object, **declared: Unpack[ForeignDeclarations]) -> Tool:
    """A tool from an object with `name`, `description`, `parameters` (or `schema`) and `execute`.

        Agent(model=model, tools=[class_tool(Weather(), side_effects="read")])

    Each may be an attribute or a method without parameters; so may `available`. Alternatively,
    `definition()` returns the first three, and `info()` texts for people: `description` becomes the
    summary, `type` the type. `execute` may be a coroutine function, or None for a tool that is
    never offered. Raises UnsuitableType, ValueError.
    """
    info, definition = _read(source, "info"), _read(source, "definition")

    def find(*names: str) -> Any:
        places = (definition, source, info)
        return next(
            (
                value
                for place in places
                for name in names
                if (value := _read(place, name)) is not None
            ),
            None,
        )

    name, description = find("name"), str(find("description") or "")
    if not isinstance(name, str):
        raise UnsuitableType(
            f"{type(source).__name__} has no name as text, so it is no tool: {FORMS}"
        )
    if "available" not in declared and callable(getattr(source, "available", None)):
        declared["available"] = lambda: _read(source, "available")
    if (about := str(_read(info, "description") or "")) and about != description:
        declared.setdefault("summary", about)
    if kind := _word(_read(info, "type")):
        declared.setdefault("type", kind)
    return foreign_tool(
        name, description, find("parameters", "schema") or {}, _execute_of(source, name), **declared
    )


def as_tool(source: object) -> Tool:
    """The `Tool`, or one made from a callable or a self-describing object. Raises as `@tool`."""
    match source:
        case Tool(is_method=True):
            raise UnsuitableType(
                f"{source.name} is a method of a class. Give that of an object of it: "
                f"thing.{source.name}"
            )
        case Tool():
            return source
        case FunctionType() | MethodType() | partial():
            return make_tool(source)
        case _ if callable(source) and not isinstance(source, type) and _says_nothing(source):
            return make_tool(source)
        case _:
            return class_tool(source)


def _says_nothing(source: object) -> bool:
    """Whether a callable object does not describe a tool."""
    return not any(hasattr(source, name) for name in ("execute", "definition", "info"))


def _execute_of(source: object, name: str) -> Callable[..., Any] | None:
    """The callable that runs the tool; None if the object has None. Raises UnsuitableType."""
    members = [member for member in dir(source) if not member.startswith("_")]
    if "execute" not in members:
        near = difflib.get_close_matches("execute", members, n=1)
        hint = f"; is it {near[0]}?" if near else ""
        for member, advice in ADVICE.items():
            hint = f". {advice}" if member in members else hint
        raise UnsuitableType(
            f"{name}: {type(source).__name__} has no execute, so it could never be run{hint}"
        )
    execute = getattr(source, "execute", None)
    if execute is not None and not callable(execute):
        raise UnsuitableType(f"{name}: execute is to be a function, not {type(execute).__name__}")
    if isinstance(source, type) and isinstance(
        inspect.getattr_static(source, "execute"), FunctionType
    ):
        raise UnsuitableType(
            f"{name}: {source.__name__} is a class. Give an object of it: {source.__name__}()"
        )
    return execute


def _word(value: object) -> str:
    """A tool's type for people: a `ToolType` if it is one, else unchanged."""
    word = str(getattr(value, "value", value) or "").strip()
    return ToolType(word) if word in set(ToolType) else word


def _read(place: object, name: str) -> Any:
    """An attribute, a member of a mapping, or the value a method of that name returns."""
    value = place.get(name) if isinstance(place, Mapping) else getattr(place, name, None)
    if (
        callable(value)
        and isinstance(place, type)
        and isinstance(inspect.getattr_static(place, name), FunctionType)
    ):
        raise UnsuitableType(
            f"{place.__name__} is a class. Give an object of it: {place.__name__}()"
        )
    return value() if callable(value) else value


# --- schemas --------------------------------------------------------------------------------------


def whole_schema(parameters: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The schema of an object, with omitted defaults and without a reference at its top. Raises
    UnsuitableType.
    """
    given = deepcopy(dict(parameters))
    if given.keys().isdisjoint(("properties", "required")):
        given = dict(resolve_reference(given, given)) or given
    schema = {"type": "object", "properties": {}, **given}
    if schema["type"] != "object":
        raise UnsuitableType(
            f"{name}: the parameters of a tool are an object, not {schema['type']!r}"
        )
    return schema


def takes_raw_input(schema: Mapping[str, Any]) -> bool:
    """Whether the only parameter is a text called `input`."""
    properties = schema["properties"]
    return list(properties) == [INPUT] and properties[INPUT].get("type") == "string"


# --- bodies ---------------------------------------------------------------------------------------


def pass_arguments(
    execute: Callable[..., Any], schema: Mapping[str, Any]
) -> tuple[Callable[..., Any], bool]:
    """The body, called with keyword arguments, and whether it wants the context.

    After an optional `ToolContext`, `execute` gets its arguments by name if its parameters are the
    schema's. Otherwise it gets, as its only parameter: the text, for a tool with just `input`; the
    arguments as JSON, if annotated as `str`; else a dict. Raises UnsuitableType if nothing fits.
    """
    parameters = list(inspect.signature(execute).parameters.values())
    hints = _hints(execute)
    wants_context = bool(parameters) and hints.get(parameters[0].name) is ToolContext
    own = parameters[1:] if wants_context else parameters
    names = {parameter.name for parameter in own}
    by_name = names == set(schema["properties"]) or any(
        each.kind is each.VAR_KEYWORD for each in own
    )
    if by_name:
        return execute, wants_context
    if not own or len([each for each in own if each.default is each.empty]) > 1:
        takes = ", ".join(sorted(names)) or "nothing"
        raise UnsuitableType(f"execute takes {takes}, which are not the parameters of the schema")
    if takes_raw_input(schema):
        return _adapt(execute, lambda arguments: arguments[INPUT]), wants_context
    if hints.get(own[0].name) is str:
        return _adapt(
            execute, lambda arguments: json.dumps(arguments, ensure_ascii=False)
        ), wants_context
    return _adapt(execute, lambda arguments: arguments), wants_context


def _hints(execute: Callable[..., Any]) -> dict[str, Any]:
    try:
        return get_type_hints(execute)
    except (NameError, TypeError):
        return {}  # unresolvable annotations say nothing


def _adapt(
    execute: Callable[..., Any], form: Callable[[dict[str, Any]], Any]
) -> Callable[..., Any]:
    if inspect.iscoroutinefunction(execute):

        async def body(*context: ToolContext, **arguments: Any) -> Any:
            return await execute(*context, form(arguments))

        return body

    def plain_body(*context: ToolContext, **arguments: Any) -> Any:
        return execute(*context, form(arguments))

    return plain_body
