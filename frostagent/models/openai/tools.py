"""Converts tools for all vendors: names and call ids in their alphabets, flat schemas.

Schemas are flat and inline (rule 6.10), with choices between types only for vendors that read them.
Our own tools are flat already; those of MCP servers and plug-ins may contain anything. What has no
flat form is loosened, never dropped: calls are validated against the real schema.

A valid name or id is unchanged; an invalid one is mapped deterministically, so that prompts stay
the same (rules 4.6, 6.6, 6.8). Only names are mapped back: an answer's ids are the vendor's own.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from typing import Any, TypeGuard

from frostagent.models.openai.dialects import Dialect
from frostagent.types.messages import ToolSpec

MAX_NODES = 1000  # schemas in one schema; further ones become any text
MAX_DEPTH = 32  # nesting depth
CHOICES = ("anyOf", "oneOf")
NEVER = frozenset(
    {
        "$schema",
        "$id",
        "$ref",
        "$defs",
        "$comment",
        "$anchor",
        "definitions",
        "strict",
        "const",
        "nullable",
        "allOf",
    }
    | {*CHOICES}
)
OF_KIND = {
    "properties": "object",
    "required": "object",
    "additionalProperties": "object",
    "items": "array",
}
NOTES = frozenset({"title", "description", "default", "examples"})
"""Keywords that describe a choice as a whole."""
TYPES = frozenset({"string", "number", "integer", "boolean", "object", "array"})


def write_schema(schema: Mapping[str, Any], dialect: Dialect) -> dict[str, Any]:
    """The schema of a tool's parameters, always an object; a clean one is unchanged."""
    inliner = _Inliner(schema, dialect.schema_words, unions=dialect.unions)
    written = inliner.flatten({**schema, "type": "object"}, frozenset(), 0)
    written.setdefault("properties", {})
    return written


class _Inliner:
    """Flattens one schema. `root` is what references point into. A recursive schema becomes any
    object. Without `unions`, a choice becomes one schema that accepts each option.
    """

    def __init__(
        self, root: Mapping[str, Any], words: frozenset[str] | None, *, unions: bool
    ) -> None:
        self._root = root
        self._words = words
        self._unions = unions
        self._nodes = 0

    def flatten(self, schema: object, inside: frozenset[str], depth: int) -> dict[str, Any]:
        """The schema, flat. `inside` has the references that led here."""
        self._nodes += 1
        if not isinstance(schema, Mapping) or self._nodes > MAX_NODES or depth > MAX_DEPTH:
            return {"type": "string"}
        flat, inside, options = self._resolve(schema, inside)
        if options:
            return self._flatten_choice(flat, options, inside, depth + 1)
        if "const" in flat and "enum" not in flat:
            flat["enum"] = [flat["const"]]
        written = {word: value for word, value in flat.items() if self._takes(word)}
        written["type"] = _kind(written)
        for word in [
            word for word in written if word in OF_KIND and written["type"] != OF_KIND[word]
        ]:
            del written[word]
        match written["type"]:
            case "object":
                self._flatten_object(written, inside, depth + 1)
            case "array":
                written["items"] = self.flatten(written.get("items"), inside, depth + 1)
            case _:
                pass
        texts_only = self._words is not None and written["type"] != "string"
        if texts_only or not (isinstance(written.get("enum"), list) and written["enum"]):
            written.pop("enum", None)
        return written

    def _takes(self, word: str) -> bool:
        return word not in NEVER and (self._words is None or word in self._words)

    def _flatten_choice(
        self,
        beside: dict[str, Any],
        options: list[Mapping[str, Any]],
        inside: frozenset[str],
        depth: int,
    ) -> dict[str, Any]:
        """A choice between schemas. Sibling keywords apply to each option; if they include a type,
        the options only narrow it, and are merged.
        """
        notes = {word: value for word, value in beside.items() if word in NOTES}
        rest = {word: value for word, value in beside.items() if word not in NOTES}
        flats: list[dict[str, Any]] = []
        for option in options:
            if (flat := self.flatten(_lay_over(option, rest), inside, depth)) not in flats:
                flats.append(flat)
        if len(flats) > 1 and self._unions and "type" not in beside:
            written: dict[str, Any] = {"anyOf": flats}
        else:
            written = _merged(flats)
        return written | {word: value for word, value in notes.items() if self._takes(word)}

    def _flatten_object(self, written: dict[str, Any], inside: frozenset[str], depth: int) -> None:
        properties = written.get("properties", {})
        known = properties if isinstance(properties, Mapping) else {}
        if "properties" in written:
            written["properties"] = {
                str(name): self.flatten(value, inside, depth) for name, value in known.items()
            }
        if isinstance(extra := written.get("additionalProperties", True), Mapping):
            written["additionalProperties"] = self.flatten(extra, inside, depth)
        elif not isinstance(extra, bool):
            del written["additionalProperties"]
        required = written.pop("required", None)
        if (
            names := [name for name in required if name in known]
            if isinstance(required, list)
            else []
        ):
            written["required"] = names

    def _resolve(
        self, schema: Mapping[str, Any], inside: frozenset[str]
    ) -> tuple[dict[str, Any], frozenset[str], list[Mapping[str, Any]]]:
        """The schema with references and `allOf` merged, and the options of a choice."""
        flat = dict(schema)
        options: list[Mapping[str, Any]] = []
        while not flat.keys().isdisjoint({"$ref", "allOf", *CHOICES}):
            parts: list[object] = []
            if reference := str(flat.pop("$ref", "")):
                parts.append(
                    {"type": "object"} if reference in inside else self._look_up(reference)
                )
                inside |= {reference}
            if isinstance(every := flat.pop("allOf", None), list):
                parts += every
            for key in CHOICES:
                if not isinstance(choices := flat.pop(key, None), list):
                    continue
                real = [each for each in choices if _is_something(each)]
                if len(real) > 1:
                    options = options or real
                else:
                    parts += real
            for part in parts:
                if isinstance(part, Mapping):
                    flat = _lay_over(part, flat)
        kinds = flat.get("type")
        if (
            isinstance(kinds, list)
            and len(real_kinds := [one for one in kinds if one in TYPES]) > 1
        ):
            del flat["type"]
            options = options or [_of_kind(kind, flat) for kind in real_kinds]
            flat.pop("enum", None)
        return flat, inside, options

    def _look_up(self, reference: str) -> object:
        """What a reference within the same schema points to; nothing for others."""
        node: object = self._root
        if not reference.startswith("#"):
            return {}
        for step in filter(None, reference[1:].split("/")):
            node = (
                node.get(step.replace("~1", "/").replace("~0", "~"))
                if isinstance(node, Mapping)
                else None
            )
        return node


def _lay_over(under: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Both schemas, `over` winning; properties and required names are united."""
    laid = {**under, **over}
    if isinstance(mine := over.get("properties"), Mapping) and isinstance(
        its := under.get("properties"), Mapping
    ):
        laid["properties"] = {**its, **mine}
    if isinstance(mine := over.get("required"), list) and isinstance(
        its := under.get("required"), list
    ):
        laid["required"] = [*its, *(name for name in mine if name not in its)]
    return laid


def _of_kind(kind: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """An option for one type of a list, with the enum values of that type."""
    values = schema.get("enum")
    if not isinstance(values, list):
        return {"type": kind}
    return {"type": kind, "enum": [value for value in values if _kind({"enum": [value]}) == kind]}


def _merged(flats: list[dict[str, Any]]) -> dict[str, Any]:
    """One flat schema for all of these: objects get all properties, required if required in all;
    text if one is text, because anything can be written as text.
    """
    first = flats[0]
    if len(flats) == 1:
        return first
    kinds = {flat.get("type", "") for flat in flats}
    merged = {
        word: value
        for word, value in first.items()
        if word not in {"required", "enum"} and all(other.get(word) == value for other in flats)
    }
    if kinds == {"object"}:
        return merged | _merged_objects(flats)
    if kinds == {"array"}:
        return merged | {
            "type": "array",
            "items": _merged(_unlike(flat["items"] for flat in flats)),
        }
    if len(kinds) == 1 or "string" in kinds or kinds <= {"integer", "number"}:
        kind = next((one for one in ("string", "number") if one in kinds), first["type"])
        if len(kinds) == 1 and all("enum" in flat for flat in flats):
            merged["enum"] = _unlike(value for flat in flats for value in flat["enum"])
        return merged | {"type": kind}
    others = " or ".join(sorted(kinds - {first.get("type", ""), ""}))
    told = " ".join(
        filter(None, (first.get("description", ""), f"(or {others})" if others else ""))
    )
    return {**first, "description": told}


def _merged_objects(flats: list[dict[str, Any]]) -> dict[str, Any]:
    """The properties of all these objects."""
    found: dict[str, list[dict[str, Any]]] = {}
    for flat in flats:
        for name, schema in flat.get("properties", {}).items():
            found.setdefault(name, []).append(schema)
    merged: dict[str, Any] = {"type": "object"}
    if found:
        merged["properties"] = {name: _merged(_unlike(each)) for name, each in found.items()}
    if names := [name for name in found if all(name in flat.get("required", ()) for flat in flats)]:
        merged["required"] = names
    return merged


def _unlike(values: Iterable[Any]) -> list[Any]:
    """The values without duplicates, in order."""
    unlike: list[Any] = []
    for value in values:
        if value not in unlike:
            unlike.append(value)
    return unlike


def _is_something(choice: object) -> TypeGuard[Mapping[str, Any]]:
    return isinstance(choice, Mapping) and choice.get("type") != "null"


def _kind(schema: Mapping[str, Any]) -> str:
    """The type: the first that is not null, else inferred from other keywords, else string."""
    given = schema.get("type")
    for kind in given if isinstance(given, list) else (given,):
        if isinstance(kind, str) and kind in TYPES:
            return kind
    if "properties" in schema:
        return "object"
    if "items" in schema:
        return "array"
    match schema.get("enum"):
        case [bool(), *_]:
            return "boolean"
        case [int(), *_]:
            return "integer"
        case [float(), *_]:
            return "number"
        case _:
            return "string"


# --- names and ids --------------------------------------------------------------------------------

NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
STRANGE = re.compile(r"[^A-Za-z0-9]+")
MAX_WORDS = 48  # characters of the name that are kept; with the digest at most 62

# What models add around a given name: a namespace from training, or a template token.
AROUND = re.compile(r"^(?:functions|tools|default_api)[.:]|(?:<\||:\d+$).*$", re.DOTALL)


def write_name(name: str) -> str:
    """The name in every vendor's alphabet; foreign names keep what they can."""
    if NAME.fullmatch(name):
        return name
    words = STRANGE.sub("_", name).strip("_")[:MAX_WORDS]
    return f"{words if words[:1].isalpha() else f'tool_{words}'.rstrip('_')}_{_digest(name)[:8]}"


def names_back(tools: Iterable[ToolSpec]) -> dict[str, str]:
    """Maps written names back to ours."""
    return {write_name(tool.name): tool.name for tool in tools}


def read_name(name: str, back: Mapping[str, str]) -> str:
    """The tool meant by an answer's name: exact, or without known additions; else unchanged."""
    if name in back:
        return back[name]
    return back.get(AROUND.sub("", name), name)


def write_id(identity: str, name: str, index: int, taken: Iterable[str], dialect: Dialect) -> str:
    """The id in this vendor's alphabet, different from the step's other ids. `name` is the written
    name, `index` the call's position in the transcript, from 0.
    """
    fits = re.compile(dialect.ids)
    seed, written = identity, identity
    while not fits.fullmatch(written) or written in taken:
        digest = _digest(f"{seed}/{name}")
        written = dialect.new_id.format(digest=digest, name=name, index=index)
        seed, index = digest, index + 1
    return written


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:40]
