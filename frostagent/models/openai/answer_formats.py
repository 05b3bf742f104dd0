"""How to make a server answer in JSON.

The schema is always in the prompt, too (`frostagent/structured.py`), so that every form can be
answered and a server may ignore what it does not know. Forms are tried in order; a refused one is
not tried again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from cachetools import LRUCache
from msgspec.structs import replace

from frostagent.models.openai.dialects import Dialect
from frostagent.types.arguments import resolve_reference
from frostagent.types.errors import ModelError, ToolsUnsupported
from frostagent.types.messages import (
    AssistantMessage,
    Completion,
    FinishReason,
    ModelRequest,
    ToolSpec,
)

Kind: TypeAlias = Literal["json_schema", "json_object", "tool", "words"]

ORDERS: Mapping[str, tuple[Kind, ...]] = {
    "json_schema": ("json_schema", "json_object", "tool", "words"),
    "json_object": ("json_object", "json_schema", "tool", "words"),
}

REFUSALS = frozenset({400, 422})
REFUSED = re.compile(
    r"response[_ ]?format|json[_ ](schema|object|mode)|structured[_ ]?outputs?|response mime type",
    re.IGNORECASE,
)
THIS_SCHEMA = re.compile(
    r"invalid (json[_ ])?schema|json_schema\.(schema|strict)|in context=|schema (is )?too"
    r"|(schema|grammar).{0,40}(not supported|unsupported)|\b(grammar|samplers)\b",
    re.IGNORECASE,
)
"""The problem is this schema; others may be accepted."""
NO_JSON = re.compile(r"json_validate_failed|failed to (generate|validate) json", re.IGNORECASE)
"""The server discarded the model's output: not a refusal, but the answer is lost."""

UNFIT_SCHEMAS = 64
ANSWER_TOOL = "give_answer"
CALL_IT = "Takes your answer. Call this once with the whole answer, instead of writing it as text."


@dataclass(frozen=True, slots=True)
class AnswerForm:
    """One form of a request for JSON. `schema` is strict for `json_schema`, else unchanged."""

    kind: Kind
    schema: dict[str, Any]

    @property
    def response_format(self) -> dict[str, Any] | None:
        """The parameter `response_format`, or None."""
        match self.kind:
            case "json_schema":
                described = {"name": "answer", "strict": True, "schema": self.schema}
                return {"type": "json_schema", "json_schema": described}
            case "json_object":
                return {"type": "json_object"}
            case _:
                return None

    def shape(self, request: ModelRequest) -> ModelRequest:
        """The request with the answer tool, if that is the form."""
        if self.kind != "tool":
            return request
        return replace(request, tools=(ToolSpec(ANSWER_TOOL, CALL_IT, self.schema),))

    def read(self, said: Completion) -> Completion:
        """The answer, with the answer tool's arguments as its text."""
        made = next((one for one in said.message.tool_calls if one.name == ANSWER_TOOL), None)
        if self.kind != "tool" or made is None:
            return said
        message = AssistantMessage(made.arguments, reasoning=said.message.reasoning)
        return replace(said, message=message, finish=FinishReason.STOP)


class AnswerFormats:
    """What one server is known to accept; may outlive a connection."""

    def __init__(self) -> None:
        self._refused: set[Kind] = set()
        self._unfit: LRUCache[str, bool] = LRUCache(UNFIT_SCHEMAS)

    def choose(
        self, dialect: Dialect, schema: Mapping[str, Any], *, besides: Iterable[Kind] = ()
    ) -> AnswerForm:
        """The first form that may be accepted and is not in `besides`."""
        for kind in ORDERS[dialect.answers]:
            if kind in self._refused or kind in besides:
                continue
            if kind != "json_schema":
                return AnswerForm(kind, dict(schema))
            strict = strict_schema(schema)
            if strict is not None and _key(strict) not in self._unfit:
                return AnswerForm(kind, strict)
        return AnswerForm("words", dict(schema))

    def refuses(self, form: AnswerForm, error: ModelError) -> bool:
        """Whether the server refused this form, which is remembered, or lost the answer in it."""
        if form.kind == "words":
            return False
        if form.kind == "tool":
            is_refused = isinstance(error, ToolsUnsupported)
        else:
            words = f"{error.code} {error}"
            if NO_JSON.search(words):
                return True
            if error.status not in REFUSALS:
                return False
            if form.kind == "json_schema" and THIS_SCHEMA.search(words):
                self._unfit[_key(form.schema)] = True
                return True
            is_refused = REFUSED.search(words) is not None
        if is_refused:
            self._refused.add(form.kind)
        return is_refused


def _key(schema: Mapping[str, Any]) -> str:
    return json.dumps(schema, sort_keys=True)


# --- strict schemas -------------------------------------------------------------------------------

SCALARS = frozenset({"string", "integer", "number", "boolean", "null"})
MAX_NODES = 500  # schemas in one schema
KIND_OF: Mapping[type, str] = {
    str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null",
}  # fmt: skip


class _Unsayable(Exception):
    """The schema has no strict form."""


def strict_schema(schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """The schema in strict form: inline, each object closed, each property required; of
    constraints, only types and `enum`, as the answer is validated anyway. None if it has no such
    form: an open object, any value, or recursion.
    """
    try:
        return _Strict(schema).write(schema, frozenset())
    except _Unsayable:
        return None


class _Strict:
    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._nodes = 0

    def write(self, node: object, inside: frozenset[str]) -> dict[str, Any]:
        self._nodes += 1
        if not isinstance(node, Mapping) or self._nodes > MAX_NODES:
            raise _Unsayable
        if "$ref" in node:
            reference, whole = node["$ref"], None
            if isinstance(reference, str) and reference not in inside:
                whole = resolve_reference({"$ref": reference}, self._root)
            if not whole or "$ref" in whole:
                raise _Unsayable
            beside = {word: value for word, value in node.items() if word != "$ref"}
            return self.write({**whole, **beside}, inside | {reference})
        written = self._write_kind(node, inside)
        if isinstance(told := node.get("description"), str):
            written["description"] = told
        return written

    def _write_kind(self, node: Mapping[str, Any], inside: frozenset[str]) -> dict[str, Any]:
        match node:
            case {"allOf": [only]} if isinstance(only, Mapping):
                return self.write(
                    {**only, **{k: v for k, v in node.items() if k != "allOf"}}, inside
                )
            case (
                {"allOf": _}
                | {"not": _}
                | {"if": _}
                | {"patternProperties": _}
                | {"prefixItems": _}
            ):
                raise _Unsayable
            case {"anyOf": [_, *_] as options} | {"oneOf": [_, *_] as options} if (
                "type" not in node
            ):
                return {"anyOf": [self.write(option, inside) for option in options]}
            case {"anyOf": _} | {"oneOf": _}:
                raise _Unsayable
            case {"const": value}:
                return _values([value])
            case {"enum": [_, *_] as values}:
                return _values(values)
            case {"type": [_, *_] as kinds}:
                options = [self.write({**node, "type": kind}, inside) for kind in kinds]
                return {"anyOf": options} if len(options) > 1 else options[0]
            case {"type": "object", "properties": Mapping() as properties} if (
                node.get("additionalProperties", False) is False
            ):
                return {
                    "type": "object",
                    "properties": {
                        name: self.write(one, inside) for name, one in properties.items()
                    },
                    "required": list(properties),
                    "additionalProperties": False,
                }
            case {"type": "array", "items": items}:
                return {"type": "array", "items": self.write(items, inside)}
            case {"type": str() as kind} if kind in SCALARS:
                return {"type": kind}
            case _:
                raise _Unsayable


def _values(values: list[Any]) -> dict[str, Any]:
    kinds: dict[str, list[Any]] = {}
    for value in values:
        if type(value) not in KIND_OF:
            raise _Unsayable
        kinds.setdefault(KIND_OF[type(value)], []).append(value)
    options = [
        {"type": kind} if kind == "null" else {"type": kind, "enum": same}
        for kind, same in kinds.items()
    ]
    return options[0] if len(options) == 1 else {"anyOf": options}
