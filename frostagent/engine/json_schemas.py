"""Validates external JSON schemas, and arguments against them. Imported only if needed."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from typing import Any

from jsonschema.exceptions import SchemaError, ValidationError, best_match
from jsonschema.protocols import Validator
from jsonschema.validators import extend, validator_for
from referencing import Registry, Resource
from referencing.exceptions import Unresolvable
from referencing.jsonschema import specification_with

from frostagent.types.arguments import resolve_reference
from frostagent.types.errors import InvalidArguments
from frostagent.types.schema import UnsuitableType

LAST = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\$", re.DOTALL)
"""A `$` in a pattern, after skipping escaped characters and character classes."""

SHOWN = 80  # characters of a wrong value that an error message quotes


def validator_of(schema: dict[str, Any], name: str) -> Validator:
    """A validator that fetches nothing. Raises UnsuitableType for an invalid schema."""
    kind = validator_for(schema, default=validator_for({}))
    try:
        kind.check_schema(schema)
        json.dumps(schema)
    except SchemaError as error:
        raise UnsuitableType(f"{name}: not a JSON schema: {error.message}") from None
    except (TypeError, ValueError) as error:
        raise UnsuitableType(f"{name}: a schema is made of JSON values ({error})") from None
    try:
        _look_up_references(specification_with(kind.META_SCHEMA["$schema"]).create_resource(schema))
    except Unresolvable as error:
        raise UnsuitableType(
            f"{name}: the schema refers to {error.ref}, which is not in it"
        ) from None
    extended: Callable[..., Callable[..., Validator]] = extend  # `extend` has no types of its own
    return extended(kind, {"pattern": _check_pattern})(schema, registry=Registry())


def _look_up_references(schema: Resource[Any]) -> None:
    """Raises Unresolvable for a reference that leads outside of the schema, or nowhere."""
    known: Registry[Any] = Registry()
    nodes = [(schema, known.resolver_with_root(schema))]
    while nodes:
        node, resolver = nodes.pop()
        if isinstance(node.contents, Mapping):
            for ref in (node.contents.get("$ref"), node.contents.get("$dynamicRef")):
                if isinstance(ref, str):
                    resolver.lookup(ref)
        nodes += [(inner, resolver.in_subresource(inner)) for inner in node.subresources()]


def _check_pattern(
    _: Validator, pattern: str, value: object, __: object
) -> Iterator[ValidationError]:
    """`$` matches only at the end of the text, as in JSON Schema, not before a final newline."""
    ended = LAST.sub(lambda found: r"\Z" if found[0] == "$" else found[0], pattern)
    if isinstance(value, str) and not re.search(ended, value):
        yield ValidationError(f"{value!r} does not match {pattern!r}")


def check_by_schema(
    validator: Validator, schema: Mapping[str, Any], given: dict[str, Any]
) -> dict[str, Any]:
    """The arguments with the schema's defaults. Raises InvalidArguments."""
    filled: dict[str, Any] = fill_defaults(given, schema, schema)
    errors = sorted(
        validator.iter_errors(filled), key=lambda error: [str(part) for part in error.absolute_path]
    )
    if errors:
        fields = tuple(line for error in errors for line in describe(error))
        raise InvalidArguments("; ".join(fields), fields=fields)
    return filled


def fill_defaults(value: Any, schema: object, root: Mapping[str, Any]) -> Any:
    """A copy with the schema's defaults, at any depth within existing objects and lists. `root` is
    the schema that references point into.
    """
    if not isinstance(schema, Mapping):
        return value
    schema = resolve_reference(schema, root)
    match value:
        case dict():
            properties = schema.get("properties", {})
            filled = {
                name: fill_defaults(member, properties.get(name), root)
                for name, member in value.items()
            }
            for name, child in properties.items():
                whole = resolve_reference(child, root) if isinstance(child, Mapping) else {}
                if name not in filled and "default" in whole:
                    filled[name] = deepcopy(whole["default"])
            return filled
        case list():
            return [fill_defaults(item, schema.get("items"), root) for item in value]
        case _:
            return value


def describe(error: ValidationError, *, root: str = "arguments") -> Iterator[str]:
    """Each problem as `path: problem`, as for our own tools. `root` names the whole value."""
    path = ".".join(map(str, error.absolute_path))
    match error.validator:
        case "required":
            name = error.message.removesuffix(" is a required property").strip(
                "'\""
            )  # each name is reported separately
            yield f"{path}.{name}: required" if path else f"{name}: required"
        case "anyOf" | "oneOf" if error.context:
            closest = best_match(error.context)
            yield f"{path or root}: {closest.message if closest else error.message}"
        case _:
            got = repr(error.instance)
            shown = got if len(got) <= SHOWN else got[: SHOWN - 3] + "..."
            yield f"{path or root}: {error.message.replace(got, shown)}"
