"""The arguments of a tool as fields of a form, by their schema, and what was typed there as a model
would write it. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

MOST: Final = 20  # fields; what has more, or no schema that is understood, is typed as JSON


class Field(Struct, frozen=True, kw_only=True):
    """An argument: its `key` in the form, what it is for, and what is typed there.

    `kind` is `text`, `number`, `choice` (of `choices`, typed by their places) or `json`; a field
    without a `name` holds all arguments. `usual` is what counts where nothing is typed.
    """

    key: str
    name: str = ""
    kind: str = "json"
    about: str = ""
    usual: str = ""
    is_needed: bool = False
    choices: tuple[Any, ...] = ()
    typed: str = ""


def fields_of(schema: Mapping[str, Any], typed: Mapping[str, str]) -> tuple[Field, ...]:
    """The fields of a tool's arguments, with what was typed by their keys."""
    properties = schema.get("properties", {})
    if (
        not isinstance(properties, Mapping)
        or len(properties) > MOST
        or not all(isinstance(one, Mapping) for one in properties.values())
    ):
        return (Field(key="all", typed=typed.get("all", "{}")),)
    needed = schema.get("required", ())
    return tuple(
        _field(f"a{place}", str(name), one, typed, is_needed=name in needed)
        for place, (name, one) in enumerate(properties.items())
    )


def arguments_of(fields: Sequence[Field]) -> str:
    """The typed fields as the JSON a model would write. A value that does not fit is left as it is:
    the tool says what is wrong with it.
    """
    if [field.name for field in fields] == [""]:
        return fields[0].typed
    given = {field.name: _value(field) for field in fields if field.typed}
    return json.dumps(given, ensure_ascii=False)


def _field(
    key: str, name: str, schema: Mapping[str, Any], typed: Mapping[str, str], *, is_needed: bool
) -> Field:
    usual = schema.get("default")
    kind, choices = _kind(schema)
    return Field(
        key=key,
        name=name,
        kind=kind,
        about=str(schema.get("description", "")),
        usual="" if usual in (None, "") else json.dumps(usual, ensure_ascii=False),
        is_needed=is_needed,
        choices=choices,
        typed=typed.get(key, ""),
    )


def _kind(schema: Mapping[str, Any]) -> tuple[str, tuple[Any, ...]]:
    if isinstance(choices := schema.get("enum"), list | tuple) and choices:
        return "choice", tuple(choices)
    match schema.get("type"):
        case "boolean":
            return "choice", (True, False)
        case "string":
            return "text", ()
        case "integer" | "number":
            return "number", ()
        case _:
            return "json", ()


def _value(field: Field) -> Any:
    typed = field.typed
    if field.kind == "text":
        return typed
    if field.kind == "choice":
        places = {str(place): choice for place, choice in enumerate(field.choices)}
        return places.get(typed, typed)
    try:
        return json.loads(typed)
    except (ValueError, RecursionError):
        return typed
