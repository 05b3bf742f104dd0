"""Raw text of a call -> the arguments of a tool: parsed, mended by the schema, validated.

What was mended is recorded (`bot/domain/mending.py`). Unknown keys are never dropped in silence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from math import isfinite
from typing import Any

from msgspec import Struct

from bot.domain.errors import InvalidArguments
from bot.domain.mending import ELSEWHERE, Mending
from bot.domain.readings import loads, read_json

WRAPPERS = ("arguments", "parameters")
INPUT = "input"  # the one field of a tool that takes plain text (seeds/002)
PLAIN = {"string": str, "integer": int, "number": float, "boolean": bool}

Check = Callable[[dict[str, Any]], dict[str, Any]]


class Checked(Struct, frozen=True):
    """Arguments that fit. `arguments` are as the body takes them, `plain` the same as JSON has
    them.

    `coerced` has a line for each value that was mended, `unknown` the path of each key that no
    parameter has.
    """

    arguments: dict[str, Any]
    plain: dict[str, Any]
    coerced: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()


def parse_arguments(raw: str) -> dict[str, Any]:
    """A call's raw arguments as an object; nothing at all means no arguments. Raises
    InvalidArguments.

    Several vendors send "" or null for a call without arguments, or the object once more as text
    (`vendors.md` 3.1, 3.5); what else it may look like is in `readings`.
    """
    return _parse(raw)[0]


def parse_for(
    schema: Mapping[str, Any], raw: str, *, name: str
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The same for a tool of that schema and name, and a line for each thing that was mended.
    Raises InvalidArguments.

    An object that holds the arguments, and their tool's name at most, is taken off them (3.5),
    unless the tool has such a field itself, or may have any.
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
    """Whether the names may be a tool's own. One that names no fields at all may have any, so only
    nothing is clear.
    """
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
    """The arguments of a tool that takes one text: an object with the field `input`, or else the
    raw text.
    """
    try:
        value = loads(raw)
    except ValueError:
        return {INPUT: raw}
    return value if isinstance(value, dict) and INPUT in value else {INPUT: raw}


class Shape(Struct, frozen=True):
    """A schema as arguments are mended by it. `plain` are the types of parameters whose values need
    no second look.
    """

    schema: Mapping[str, Any]
    plain: Mapping[str, type]

    @classmethod
    def of(cls, schema: Mapping[str, Any]) -> Shape:
        """The shape of an object with this schema."""
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
    """Mend the arguments by their shape, then have them checked. Raises InvalidArguments with every
    problem.

    Unknown keys are left out and named where the tool is `lenient`, refused where it is not.
    """
    types = shape.plain
    if all(type(value) is types.get(name) for name, value in given.items()):
        plain = dict(given)
        return Checked(check(plain), _finite(plain))
    notes = Mending(shape.schema)
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
    """The arguments, if every number in them is one that JSON has: 1e999 is none. Raises
    InvalidArguments.
    """
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
