"""Typed functions -> a flat JSON schema and a validator of arguments.

The schema uses only what every vendor reads: no `$ref`, no `anyOf`, no type lists, no
`additionalProperties` (`docs/protocol/vendors.md` 6.10). A parameter whose type cannot be said
that way is an error when the tool is defined, not when a model calls it.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, PydanticUserError, ValidationError, create_model
from pydantic.fields import FieldInfo

from frostagent.types.errors import InvalidArguments

KEPT = frozenset({
    "type", "description", "enum", "default", "properties", "required", "items",
    "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum",
    "minLength", "maxLength", "pattern", "minItems", "maxItems",
})  # fmt: skip

READ = KEPT | {"additionalProperties", "nullable"}
"""Mending arguments wants to know these besides; `nullable` is ours: null is among the values."""

NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class UnsuitableType(TypeError):
    """A parameter of a tool function has no flat schema."""


def describe_function(function: Callable[..., Any]) -> tuple[str, dict[str, str]]:
    """A docstring's text and its `Args:` section: what the tool does, and what each parameter
    means.
    """
    text = inspect.getdoc(function) or ""
    head, _, rest = text.partition("\nArgs:\n")
    arguments: dict[str, str] = {}
    name = ""
    for line in rest.splitlines():
        if match := re.match(r" {4}(\w+): *(.*)", line):
            name = match[1]
            arguments[name] = match[2]
        elif name and line.startswith("     "):
            arguments[name] += " " + line.strip()
        else:
            break
    return " ".join(head.split()), arguments


def model_of(function: Callable[..., Any], *, skip: type) -> type[BaseModel]:
    """A pydantic model of the function's parameters, the one annotated `skip` left out. Raises
    UnsuitableType.
    """
    hints = get_type_hints(function, include_extras=True)
    _, described = describe_function(function)
    fields: dict[str, Any] = {}
    for index, (name, parameter) in enumerate(inspect.signature(function).parameters.items()):
        if hints.get(name) is skip:
            if index or parameter.kind is parameter.KEYWORD_ONLY:
                raise UnsuitableType(
                    f"{function.__name__}: {name!r}, a {skip.__name__}, must be the first parameter"
                )
            continue
        if name not in hints or parameter.kind not in NAMED:
            raise UnsuitableType(
                f"{function.__name__}: parameter {name!r} needs a type and a fixed name"
            )
        default: Any = ... if parameter.default is parameter.empty else parameter.default
        # None would hide a description that stands in the annotation.
        info: FieldInfo = (
            Field(default, description=described[name]) if name in described else Field(default)
        )
        fields[name] = (hints[name], info)
    config = ConfigDict(extra="forbid", coerce_numbers_to_str=True, allow_inf_nan=False)
    try:
        return create_model(f"{function.__name__}_arguments", __config__=config, **fields)
    except PydanticUserError as error:
        raise UnsuitableType(f"{function.__name__}: {error.message}") from error


def flat_schema(model: type[BaseModel]) -> dict[str, Any]:
    """The model's JSON schema with references inlined and only widely read keywords kept. Raises
    UnsuitableType.
    """
    return _schema_of(model, KEPT)


def reading_schema(model: type[BaseModel]) -> dict[str, Any]:
    """The same, with what the reading of arguments needs to know besides. Raises UnsuitableType."""
    return _schema_of(model, READ)


def _schema_of(model: type[BaseModel], kept: frozenset[str]) -> dict[str, Any]:
    try:
        whole = model.model_json_schema()
    except PydanticUserError as error:
        raise UnsuitableType(f"{model.__name__}: {error.message}") from error
    schema = _Flattener(whole.get("$defs", {}), kept).flatten(
        whole, where=model.__name__, inside=()
    )
    schema.setdefault("properties", {})
    return schema


class _Flattener:
    """Writes a schema out flat; knows the definitions it refers to and the keywords to keep."""

    def __init__(self, defs: dict[str, Any], kept: frozenset[str]) -> None:
        self._defs = defs
        self._kept = kept

    def flatten(
        self, node: dict[str, Any], *, where: str, inside: tuple[str, ...]
    ) -> dict[str, Any]:
        """The node and all below it. Raises UnsuitableType with the place."""
        if ref := node.get("$ref"):
            name = ref.rsplit("/", 1)[-1]
            if name in inside:
                raise UnsuitableType(f"{where}: {name} contains itself")
            beside = {key: value for key, value in node.items() if key != "$ref"}
            return self.flatten({**self._defs[name], **beside}, where=where, inside=(*inside, name))
        if options := node.get("anyOf") or node.get("oneOf") or node.get("allOf"):
            real = [option for option in options if option.get("type") != "null"]
            if len(real) != 1:
                raise UnsuitableType(f"{where}: a parameter must have one type, not a union")
            beside = {
                key: value for key, value in node.items() if key not in ("anyOf", "oneOf", "allOf")
            }
            if beside.get("default", "") is None:
                del beside["default"]
            if len(real) < len(options):
                beside["nullable"] = True
            return self.flatten({**real[0], **beside}, where=where, inside=inside)
        flat = {key: value for key, value in node.items() if key in self._kept}
        if "const" in node:
            flat["enum"] = [node["const"]]
        if flat.get("type", "null") == "null":
            raise UnsuitableType(f"{where}: a parameter needs a plain type")
        if "properties" in flat:
            flat["properties"] = {
                name: self.flatten(child, where=f"{where}.{name}", inside=inside)
                for name, child in flat["properties"].items()
            }
        values = node.get("additionalProperties")
        if isinstance(values, dict) and values.get("type", "object") in ("object", "array"):
            raise UnsuitableType(
                f"{where}: a mapping may hold plain values only, its keyword is not sent"
            )
        if flat["type"] == "array":
            if "items" not in flat:
                raise UnsuitableType(f"{where}: a list needs the type of its items")
            flat["items"] = self.flatten(flat["items"], where=f"{where}[]", inside=inside)
        return flat


def check_arguments(model: type[BaseModel], arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments as the function wants them. Raises InvalidArguments with one line for each
    wrong field.
    """
    try:
        checked = model.model_validate(arguments)
    except ValidationError as error:
        fields = tuple(_line(dict(item)) for item in error.errors(include_url=False))
        raise InvalidArguments("; ".join(fields), fields=fields) from error
    return {name: getattr(checked, name) for name in type(checked).model_fields}


def _line(error: dict[str, Any]) -> str:
    path = ".".join(map(str, error["loc"])) or "arguments"
    match error["type"]:
        case "missing":
            return f"{path}: required"
        case "extra_forbidden":
            return f"{path}: no such field, leave it out"
        case "value_error":
            return (
                f"{path}: {error['ctx']['error']}" if "ctx" in error else f"{path}: {error['msg']}"
            )
        case _:
            got = repr(error["input"])
            return f"{path}: {error['msg']}, got {got if len(got) <= 80 else got[:77] + '...'}"
