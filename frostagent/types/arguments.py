"""Turns the raw text of a call into arguments: parse, repair by the schema, validate.

`Checked.coerced` lists every repair. Unknown keys are reported, never dropped silently.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

from msgspec import Struct

from frostagent.text.lenient_json import loads, read_json
from frostagent.types.errors import InvalidArguments

ELSEWHERE = frozenset({
    "patternProperties", "allOf", "anyOf", "oneOf", "if", "dependentSchemas", "$ref", "$dynamicRef",
})  # fmt: skip
"""Keywords that may allow keys beyond `properties`; only the validator knows which."""

NEVER_GUESSED = ("boolean", "integer", "number")
"""Never converted here: pydantic would read "yes" as true, true as 1 and "1_000" as 1000."""

DEEPEST = 8  # chained references; a schema may refer to itself
SHOWN = 80  # characters of a wrong value that an error message quotes
LONGEST_NUMBER = 64  # characters; no meaningful number is longer

WHOLE = re.compile(r"\s*[+-]?\d+(\.0*)?\s*")
NUMBER = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?\s*")


@dataclass(slots=True)
class ArgumentRepair:
    """One walk along a schema: returns repaired values and records each repair and each misfit."""

    root: Mapping[str, Any]
    coerced: list[str] = field(default_factory=list)
    unknown: list[tuple[str, Iterable[str]]] = field(default_factory=list)
    unfit: list[str] = field(default_factory=list)

    def refusals(self) -> Iterable[str]:
        """One line for each unknown key, with the closest known name."""
        for path, names in self.unknown:
            near = difflib.get_close_matches(path.rpartition(".")[2], names, n=1, cutoff=0.5)
            hint = f'; did you mean "{near[0]}"?' if near else ""
            yield f"{path}: no such field, leave it out{hint}"

    def value(self, value: Any, node: Mapping[str, Any], path: str) -> Any:
        """The value converted to the node's type, or unchanged if that would be a guess."""
        node = self.resolve(node)
        types, nullable = schema_types(node)
        if (value is None and nullable) or not types:
            return value
        if not any(_fits(value, kind) for kind in types):
            if len(types) > 1:
                return value  # a choice of types: any conversion would be a guess
            value = self._mend(value, types[0], node, path, nullable=nullable)
        match value:
            case dict() if "object" in types:
                return self.members(value, node, path)
            case list() if "array" in types:
                items = node.get("items")
                if not isinstance(items, Mapping):
                    return value
                return [
                    self.value(item, items, f"{path}.{index}") for index, item in enumerate(value)
                ]
            case _:
                return value

    def members(
        self, value: Mapping[str, Any], node: Mapping[str, Any], path: str
    ) -> dict[str, Any]:
        """The object with its members repaired, without unknown keys and without optional nulls."""
        properties = node.get("properties") or {}
        others = not ELSEWHERE.isdisjoint(node) or node.get("additionalProperties", not properties)
        prefix = f"{path}." if path else ""
        mended: dict[str, Any] = {}
        for name, member in value.items():
            if name in properties:
                child = properties[name]
                if (
                    member is None
                    and name not in node.get("required", ())
                    and not self._takes_null(child)
                ):
                    self.coerced.append(f"{prefix}{name}: null left out")
                else:
                    mended[name] = self.value(member, child, prefix + name)
            elif isinstance(others, Mapping):
                mended[name] = self.value(member, others, prefix + name)
            elif others:
                mended[name] = member
            else:
                self.unknown.append((prefix + name, tuple(properties)))
        return mended

    def _takes_null(self, node: Mapping[str, Any]) -> bool:
        types, nullable = schema_types(self.resolve(node))
        return nullable or not types

    def resolve(self, node: Mapping[str, Any]) -> Mapping[str, Any]:
        """Follow references within the schema, and unwrap a choice between one type and null."""
        for _ in range(DEEPEST):
            node = resolve_reference(node, self.root)
            options = node.get("anyOf") or node.get("oneOf")
            if not options:
                return node
            real = [option for option in options if option != {"type": "null"}]
            if len(real) != 1 or not isinstance(real[0], Mapping):
                return {}
            node = {**real[0], "nullable": len(real) < len(options)}
        return {}

    def _mend(
        self, value: Any, kind: str, node: Mapping[str, Any], path: str, *, nullable: bool
    ) -> Any:
        if nullable and value == "null":
            self.coerced.append(f"{path}: text -> null")
            return None
        mended = _mended(value, kind)
        if kind == "array" and not isinstance(mended, list) and value is not None:
            mended = self._one_of_many(value, node.get("items"), path)
        if mended is None:
            if kind in NEVER_GUESSED and value is not None:
                self.unfit.append(f"{path}: must be of the type {kind}, got {repr(value)[:SHOWN]}")
            return value
        self.coerced.append(f"{path}: {_kind_of(value)} -> {kind}")
        return mended

    def _one_of_many(self, value: Any, items: object, path: str) -> list[Any] | None:
        """The value as a one-element list, if the list accepts such items."""
        if not isinstance(items, Mapping):
            return None
        quiet = ArgumentRepair(self.root)
        item = quiet.value(value, items, path)
        types, _ = schema_types(quiet.resolve(items))
        return [value] if any(_fits(item, kind) for kind in types) else None


def resolve_reference(node: Mapping[str, Any], root: Mapping[str, Any]) -> Mapping[str, Any]:
    """Follow references within the schema, keeping sibling keywords. {} for a dangling one."""
    for _ in range(DEEPEST):
        ref = node.get("$ref")
        if not (isinstance(ref, str) and ref.startswith("#/")):
            return node
        found: Any = root
        for part in ref[2:].split("/"):
            name = part.replace("~1", "/").replace("~0", "~")
            found = found.get(name) if isinstance(found, Mapping) else None
        if not isinstance(found, Mapping):
            return {}
        node = {**found, **{key: value for key, value in node.items() if key != "$ref"}}
    return {}


def schema_types(node: Mapping[str, Any]) -> tuple[tuple[str, ...], bool]:
    """The JSON types that a schema node accepts (none: any), and whether it accepts null."""
    kind = node.get("type")
    kinds = (kind,) if isinstance(kind, str) else tuple(kind or ())
    real = tuple(name for name in kinds if name != "null")
    return real, len(real) < len(kinds) or bool(node.get("nullable"))


def _fits(value: Any, kind: str) -> bool:
    match kind:
        case "string":
            return isinstance(value, str)
        case "integer":
            return isinstance(value, int) and not isinstance(value, bool)
        case "number":
            return isfinite(value) if isinstance(value, float) else _fits(value, "integer")
        case "boolean":
            return isinstance(value, bool)
        case "array":
            return isinstance(value, list)
        case "object":
            return isinstance(value, dict)
        case _:
            return False


def _mended(value: Any, kind: str) -> Any:
    """The value as this JSON type if only one reading is possible, else None."""
    match kind, value:
        case ("boolean", str()) if value.strip().lower() in {"true", "false"}:
            return value.strip().lower() == "true"
        case "string", int() | float() if not isinstance(value, bool):
            return json.dumps(value)
        case "integer", float() if value.is_integer():
            return int(value)
        case ("integer", str()) if len(value) <= LONGEST_NUMBER and WHOLE.fullmatch(value):
            return int(value.strip().partition(".")[0])
        case ("number", str()) if len(value) <= LONGEST_NUMBER and NUMBER.fullmatch(value):
            number = float(value)
            return (
                (int(value) if WHOLE.fullmatch(value) and "." not in value else number)
                if isfinite(number)
                else None
            )
        case "object" | "array", str():
            try:
                parsed = loads(value)
            except ValueError:
                return None
            return parsed if _fits(parsed, kind) else None
        case _:
            return None


def _kind_of(value: object) -> str:
    match value:
        case str():
            return "text"
        case bool():
            return "boolean"
        case int() | float():
            return "number"
        case list():
            return "array"
        case dict():
            return "object"
        case _:
            return "null"


WRAPPERS = ("arguments", "parameters")
INPUT = "input"  # the only field of a tool that takes plain text
PLAIN = {"string": str, "integer": int, "number": float, "boolean": bool}

Check = Callable[[dict[str, Any]], dict[str, Any]]


class Checked(Struct, frozen=True):
    """Valid arguments: `arguments` as the body takes them, `plain` as JSON.

    `coerced` has one line for each repair, `unknown` the path of each key without a parameter.
    """

    arguments: dict[str, Any]
    plain: dict[str, Any]
    coerced: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()


def parse_arguments(raw: str) -> dict[str, Any]:
    """Parse a call's raw arguments as one object. Empty text and null mean no arguments.

    Several vendors send "" or null for a call without arguments, or the object encoded twice
    (`docs/protocol/vendors.md` 3.1, 3.5). Raises InvalidArguments.
    """
    return _parse(raw)[0]


def parse_by_schema(
    schema: Mapping[str, Any], raw: str, *, name: str
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """As `parse_arguments`, for a tool with this schema and name. Also returns one line for each
    repair.

    An object that only wraps the arguments, at most beside the tool's name, is unwrapped
    (`docs/protocol/vendors.md` 3.5), unless the tool could have such a field itself. Raises
    InvalidArguments.
    """
    given, how = _parse(raw)
    notes = [f"arguments: {how}"] if how else []
    wrapper = next((name for name in WRAPPERS if name in given), "")
    if not wrapper or not (
        given.keys() == {wrapper} or (given.keys() == {"name", wrapper} and given["name"] == name)
    ):
        return given, tuple(notes)
    match given[wrapper]:
        case dict() as inner:
            pass
        case str(text):
            try:
                inner = parse_arguments(text)
            except InvalidArguments:
                return given, tuple(notes)
        case _:
            return given, tuple(notes)
    if _may_have(schema, given.keys(), inner):
        return given, tuple(notes)
    return inner, (*notes, f"arguments: taken out of {wrapper}")


def _may_have(schema: Mapping[str, Any], names: Iterable[str], inner: Mapping[str, Any]) -> bool:
    """Whether the tool may have these fields. A schema without properties may have any."""
    properties = schema.get("properties") or {}
    if not ELSEWHERE.isdisjoint(schema) or schema.get("additionalProperties"):
        return True
    return any(name in properties for name in names) or (not properties and bool(inner))


def _parse(raw: str) -> tuple[dict[str, Any], str]:
    value, how = _read(raw)
    if isinstance(value, str) and value.lstrip().startswith("{"):
        value, how = _read(value)
    match value:
        case None:
            return {}, how
        case dict():
            return value, how
        case _:
            raise InvalidArguments(
                f"the arguments must be one JSON object, got {type(value).__name__}."
            )


def _read(raw: str) -> tuple[Any, str]:
    text = raw.strip()
    if text in ("", "null"):
        return None, ""
    try:
        return read_json(text)
    except ValueError as error:
        raise InvalidArguments(
            f"the arguments are not valid JSON ({error}). Send one JSON object."
        ) from None


def parse_input(raw: str) -> dict[str, Any]:
    """The arguments of a tool with one text: an object with `input`, else the raw text."""
    try:
        value = loads(raw)
    except ValueError:
        return {INPUT: raw}
    return value if isinstance(value, dict) and INPUT in value else {INPUT: raw}


class Shape(Struct, frozen=True):
    """A schema for repairing arguments. `plain` has the types that need no conversion."""

    schema: Mapping[str, Any]
    plain: Mapping[str, type]

    @classmethod
    def of(cls, schema: Mapping[str, Any]) -> Shape:
        properties: Mapping[str, Any] = schema.get("properties") or {}
        kinds = {
            name: node.get("type") for name, node in properties.items() if isinstance(node, Mapping)
        }
        return cls(
            schema,
            {
                name: PLAIN[kind]
                for name, kind in kinds.items()
                if isinstance(kind, str) and kind in PLAIN
            },
        )


def read_arguments(
    given: Mapping[str, Any], *, shape: Shape, check: Check, lenient: bool
) -> Checked:
    """Repair the arguments by their shape, then validate them.

    Unknown keys are dropped and named if `lenient`, else refused. Raises InvalidArguments with
    every problem.
    """
    types = shape.plain
    if all(type(value) is types.get(name) for name, value in given.items()):
        plain = dict(given)
        return Checked(check(plain), _finite(plain))
    notes = ArgumentRepair(shape.schema)
    plain = notes.members(given, shape.schema, "")
    strange = () if lenient else tuple(notes.refusals())
    try:
        arguments = check(dict(plain))
    except InvalidArguments as error:
        if not strange:
            raise
        fields = (*(error.fields or (str(error),)), *strange)
        raise InvalidArguments("; ".join(fields), fields=fields) from None
    if refused := (*notes.unfit, *strange):
        raise InvalidArguments("; ".join(refused), fields=refused)
    return Checked(
        arguments, _finite(plain), tuple(notes.coerced), tuple(path for path, _ in notes.unknown)
    )


def _finite(plain: dict[str, Any]) -> dict[str, Any]:
    """The arguments unchanged. Raises InvalidArguments for a number JSON cannot hold: 1e999."""
    fields = tuple(f"{path}: must be a finite number" for path in _infinities(plain, ""))
    if fields:
        raise InvalidArguments("; ".join(fields), fields=fields)
    return plain


def _infinities(value: Any, path: str) -> Iterator[str]:
    match value:
        case float() if not isfinite(value):
            yield path
        case dict():
            for name, member in value.items():
                yield from _infinities(member, f"{path}.{name}" if path else str(name))
        case list():
            for index, item in enumerate(value):
                yield from _infinities(item, f"{path}.{index}")
        case _:
            pass
