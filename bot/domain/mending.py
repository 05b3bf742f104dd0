"""Values mended by their schema: what small models get wrong in a way that can mean one thing only.

"3" for 3, "true" for true, 2.0 for 2, a number for an id in text, JSON in a text for an object or a
list, one value for a list of it, null for a field left out. Where a schema leaves a choice nothing
is guessed.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

from bot.domain.readings import loads

ELSEWHERE = frozenset({
    "patternProperties", "allOf", "anyOf", "oneOf", "if", "dependentSchemas", "$ref", "$dynamicRef",
})  # fmt: skip
"""Keywords beside which the properties are not all there is: which keys are unknown, the check
alone can say.
"""

NEVER_GUESSED = ("boolean", "integer", "number")
"""Types that a check may be freer with than we are: pydantic takes "yes" for true, true for 1,
"1_000" for 1000.
"""

DEEPEST = 8  # references that follow each other; a schema may go round in circles
SHOWN = 80  # characters of a wrong value that are told
LONGEST_NUMBER = 64  # characters; no number anybody means is longer

WHOLE = re.compile(r"\s*[+-]?\d+(\.0*)?\s*")
NUMBER = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?\s*")


@dataclass(slots=True)
class Mending:
    """One walk along the schema: gives the mended values, and takes down what it did, and what it
    could not mend.
    """

    root: Mapping[str, Any]
    coerced: list[str] = field(default_factory=list)
    unknown: list[tuple[str, Iterable[str]]] = field(default_factory=list)
    unfit: list[str] = field(default_factory=list)

    def refusals(self) -> Iterable[str]:
        """A line for each unknown key, with the nearest name there is."""
        for path, names in self.unknown:
            near = difflib.get_close_matches(path.rpartition(".")[2], names, n=1, cutoff=0.5)
            hint = f'; did you mean "{near[0]}"?' if near else ""
            yield f"{path}: no such field, leave it out{hint}"

    def value(self, value: Any, node: Mapping[str, Any], path: str) -> Any:
        """The value as this node of the schema wants it, or as it is."""
        node = self.resolve(node)
        types, nullable = types_of(node)
        if (value is None and nullable) or not types:
            return value
        if not any(_fits(value, kind) for kind in types):
            if len(types) > 1:
                return value  # a choice: not ours to make
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
        """The object with its members mended; what is unknown or null for nothing is not in it."""
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
        types, nullable = types_of(self.resolve(node))
        return nullable or not types

    def resolve(self, node: Mapping[str, Any]) -> Mapping[str, Any]:
        """A reference into the schema itself, followed; and a choice between one thing and null,
        that thing.
        """
        for _ in range(DEEPEST):
            node = follow(node, self.root)
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
        """One value, as the only one of its list, where the list takes such."""
        if not isinstance(items, Mapping):
            return None
        quiet = Mending(self.root)
        item = quiet.value(value, items, path)
        types, _ = types_of(quiet.resolve(items))
        return [value] if any(_fits(item, kind) for kind in types) else None


def follow(node: Mapping[str, Any], root: Mapping[str, Any]) -> Mapping[str, Any]:
    """A reference into the schema itself, followed, with what stands beside it; {} where it leads
    nowhere.
    """
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


def types_of(node: Mapping[str, Any]) -> tuple[tuple[str, ...], bool]:
    """The JSON types a node of a schema takes, and whether null is one of them; no types where it
    does not say.
    """
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
    """The value as this JSON type where it can mean one thing only, else None."""
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
