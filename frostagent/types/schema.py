"""Turns callables into a JSON schema of their parameters and a validator.

The schema is inline and uses few keywords: no `$ref`, no type lists, no `additionalProperties`.
`anyOf` appears only for a parameter that really has several types; `frostagent/models/openai`
simplifies it for vendors that cannot read it (`docs/protocol/vendors.md` 6.10). A parameter whose
type has no schema is an error when the tool is defined, not when a model calls it.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from dataclasses import is_dataclass
from functools import partial
from typing import Any, get_origin, get_type_hints

from msgspec import Struct
from pydantic import BaseModel, ConfigDict, Field, PydanticUserError, ValidationError, create_model
from pydantic.fields import FieldInfo

from frostagent.types.errors import InvalidArguments

KEPT = frozenset({
    "type", "description", "enum", "default", "properties", "required", "items",
    "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum",
    "minLength", "maxLength", "pattern", "minItems", "maxItems", "anyOf",
})  # fmt: skip

READ = KEPT | {"additionalProperties", "nullable"}
"""Keywords for repairing arguments. `nullable` is our own: null is allowed."""

NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


READ_ONCE = (Iterator, AsyncIterator, Generator)


class UnsuitableType(TypeError):
    """A parameter of a tool function has no JSON schema."""


class Signature(Struct, frozen=True):
    """What a callable declares: the tool's name and description, a model of its parameters, and
    whether the first one is the context.

    `packed` names the only parameter if it is a pydantic model or a dataclass: the arguments are
    then its fields.
    """

    name: str
    description: str
    model: type[BaseModel]
    wants_context: bool = False
    is_method: bool = False
    packed: str = ""

    def schema(self, kept: frozenset[str] = KEPT) -> dict[str, Any]:
        """The arguments as a JSON object schema. Raises UnsuitableType."""
        whole = _schema_of(self.model, kept)
        if not self.packed:
            return whole
        fields: dict[str, Any] = whole["properties"][self.packed]
        return {"type": "object", "properties": {}} | {
            key: value for key, value in fields.items() if key != "description"
        }

    def check(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """The arguments as the callable takes them. Raises InvalidArguments."""
        return check_arguments(self.model, arguments, packed=self.packed)


def read_signature(function: Callable[..., Any], *, skip: type) -> Signature:
    """Read a function, a method, a `functools.partial` or a callable object.

    Arguments fixed by a partial are not offered. An untyped first parameter `self` marks a method
    in a class body. Raises UnsuitableType.
    """
    name = callable_name(function)
    bare, fixed = function, set[str]()
    while isinstance(bare, partial):
        fixed |= bare.keywords.keys()
        bare = bare.func
    described = bare if inspect.isroutine(bare) else type(bare).__call__
    try:
        hints = get_type_hints(described, include_extras=True)
        parameters = dict(inspect.signature(function).parameters)
    except NameError as error:
        raise UnsuitableType(
            f"{name}: the annotation {error.name!r} is no name of its module at run time. Import "
            "it outside of TYPE_CHECKING, and define it outside of functions."
        ) from None
    except (TypeError, ValueError) as error:
        raise UnsuitableType(f"{name}: its parameters cannot be read ({error})") from None
    is_method = next(iter(parameters), "") == "self" and "self" not in hints
    if is_method:
        del parameters["self"]
    for each in fixed:
        parameters.pop(each, None)
    description, about = describe_function(described)
    if described is not bare and not described.__doc__:  # not object.__call__'s docstring
        description, about = describe_function(type(bare))
    wants_context, fields = False, dict[str, Any]()
    for index, (key, parameter) in enumerate(parameters.items()):
        hint = hints.get(key)
        if hint is skip:
            if index or parameter.kind is parameter.KEYWORD_ONLY:
                raise UnsuitableType(
                    f"{name}: {key!r}, a {skip.__name__}, must be the first parameter"
                )
            wants_context = True
            continue
        if key not in hints or parameter.kind not in NAMED:
            raise UnsuitableType(f"{name}: parameter {key!r} needs a type and a fixed name")
        if hint in READ_ONCE or get_origin(hint) in READ_ONCE:
            raise UnsuitableType(f"{name}: parameter {key!r} can be read only once; take a list")
        default: Any = ... if parameter.default is parameter.empty else parameter.default
        # A description of None would hide one in the annotation.
        info: FieldInfo = Field(default, description=about[key]) if key in about else Field(default)
        fields[key] = (hint, info)
    config = ConfigDict(extra="forbid", coerce_numbers_to_str=True, allow_inf_nan=False)
    try:
        model = create_model(f"{name}_arguments", __config__=config, **fields)
    except PydanticUserError as error:
        raise UnsuitableType(f"{name}: {error.message}") from error
    return Signature(
        name=name,
        description=description,
        model=model,
        wants_context=wants_context,
        is_method=is_method,
        packed=_packed(model),
    )


def _packed(model: type[BaseModel]) -> str:
    """The only parameter whose fields are the arguments; empty if there is none."""
    match list(model.model_fields.items()):
        case [(key, info)] if info.is_required() and isinstance(kind := info.annotation, type):
            return key if issubclass(kind, BaseModel) or is_dataclass(kind) else ""
        case _:
            return ""


def callable_name(function: Callable[..., Any]) -> str:
    """The `__name__`, through any partial; for a callable object, its class name in snake case."""
    while isinstance(function, partial):
        function = function.func
    if name := getattr(function, "__name__", ""):
        return str(name)
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", type(function).__name__).lower()


def describe_function(function: Callable[..., Any]) -> tuple[str, dict[str, str]]:
    """A docstring's text, and its `Args:` section as a mapping from parameter to description."""
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
    def __init__(self, defs: dict[str, Any], kept: frozenset[str]) -> None:
        self._defs = defs
        self._kept = kept

    def flatten(
        self, node: dict[str, Any], *, where: str, inside: tuple[str, ...]
    ) -> dict[str, Any]:
        """The node and all below it, without references. Raises UnsuitableType with the place."""
        if ref := node.get("$ref"):
            name = ref.rsplit("/", 1)[-1]
            if name in inside:
                raise UnsuitableType(f"{where}: {name} contains itself")
            beside = {key: value for key, value in node.items() if key != "$ref"}
            return self.flatten({**self._defs[name], **beside}, where=where, inside=(*inside, name))
        if options := node.get("anyOf") or node.get("oneOf") or node.get("allOf"):
            real = [option for option in options if option.get("type") != "null"]
            if not real:
                raise UnsuitableType(f"{where}: a parameter that is always null says nothing")
            beside = {
                key: value for key, value in node.items() if key not in ("anyOf", "oneOf", "allOf")
            }
            if beside.get("default", "") is None:
                del beside["default"]
            if len(real) < len(options):
                beside["nullable"] = True
            if len(real) == 1:
                return self.flatten({**real[0], **beside}, where=where, inside=inside)
            flat = {key: value for key, value in beside.items() if key in self._kept}
            flat["anyOf"] = [self.flatten(each, where=where, inside=inside) for each in real]
            return flat
        flat = {key: value for key, value in node.items() if key in self._kept}
        if "const" in node:
            flat["enum"] = [node["const"]]
        if flat.get("type", "") == "null":
            raise UnsuitableType(f"{where}: a parameter that is always null says nothing")
        if "type" not in flat:
            return _without_type(flat)
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
            items = node.get("prefixItems") or [flat.get("items", {})]
            kinds = [self.flatten(item, where=f"{where}[]", inside=inside) for item in items]
            each = [kind for index, kind in enumerate(kinds) if kind not in kinds[:index]]
            flat["items"] = each[0] if len(each) == 1 else {"anyOf": each}
        return flat


def _without_type(flat: dict[str, Any]) -> dict[str, Any]:
    """A node of any type, or an enumeration of values of several types."""
    values = flat.pop("enum", None)
    if values is None:
        return flat
    kinds: dict[str, list[Any]] = {}
    for value in values:
        kinds.setdefault(JSON_TYPES[type(value)], []).append(value)
    flat["anyOf"] = [{"type": kind, "enum": same} for kind, same in kinds.items()]
    return flat


JSON_TYPES = {str: "string", bool: "boolean", int: "integer", float: "number"}


def check_arguments(
    model: type[BaseModel], arguments: dict[str, Any], *, packed: str = ""
) -> dict[str, Any]:
    """The validated arguments as the function takes them; with `packed`, they are that parameter's
    fields.

    Raises InvalidArguments with one line for each wrong field.
    """
    try:
        checked = model.model_validate({packed: arguments} if packed else arguments)
    except ValidationError as error:
        fields = tuple(
            _line(dict(item), leave_out=packed) for item in error.errors(include_url=False)
        )
        raise InvalidArguments("; ".join(fields), fields=fields) from error
    return {name: getattr(checked, name) for name in type(checked).model_fields}


def _line(error: dict[str, Any], *, leave_out: str) -> str:
    loc = error["loc"][1:] if leave_out else error["loc"]
    path = ".".join(map(str, loc)) or "arguments"
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
