"""Makes an MCP server's list of tools safe: entries that break the protocol or could mislead are
dropped with a reason, and text for the model is cleaned and capped.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from typing import Any, Final, Literal, TypeAlias

import mcp_types as types
from mcp.shared.inbound import find_invalid_x_mcp_header
from mcp_types.methods import validate_server_result
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import TypeAdapter, ValidationError
from typing_extensions import TypedDict

from frostagent.engine.json_schemas import fill_defaults
from frostagent.text.masking import one_line
from frostagent.text.visible_text import visible_text, without_role_markers
from frostagent.types.errors import InvalidArguments
from frostagent.types.results import shorten

MOST_LISTED: Final = 1_000  # entries of one page that are examined
LONGEST_TOOL_NAME: Final = 128  # characters, as the protocol recommends
LONGEST_DESCRIPTION: Final = 2_000  # characters
LONGEST_SCHEMA: Final = 20_000  # characters of JSON
LONGEST_REASON: Final = 200  # characters
LIST_TOOLS: Final = types.ListToolsRequest.model_fields["method"].default
Kind: TypeAlias = Literal["string", "number", "integer", "boolean", "object", "array", "null"]
SchemaForm = TypedDict(
    "SchemaForm",
    {
        "type": Kind | list[Kind],
        "properties": "dict[str, SchemaForm | bool]",
        "required": list[str],
        "enum": list[Any],
        "items": "SchemaForm | bool | list[SchemaForm | bool]",
        "additionalProperties": "SchemaForm | bool",
        "allOf": "list[SchemaForm | bool]",
        "anyOf": "list[SchemaForm | bool]",
        "oneOf": "list[SchemaForm | bool]",
        "$ref": str,
        "$defs": "dict[str, SchemaForm | bool]",
        "definitions": "dict[str, SchemaForm | bool]",
    },
    total=False,
)
"""The parts of a JSON schema that this module reads. Checking all of it is a hundred times slower
and would block the event loop for a server with 200 tools.
"""

FORM: Final = TypeAdapter(SchemaForm)
PROSE: Final = frozenset({"description", "title", "$comment"})
DATA: Final = frozenset({"const", "default", "enum", "examples"})


def usable_entries(
    page: Mapping[str, Any], version: str, wanted: Collection[str]
) -> tuple[list[Any], list[str]]:
    """The `wanted` tools (all if empty) of a page that the SDK can read in this protocol version,
    and a reason for each dropped one. A page that is malformed elsewhere is unchanged: the SDK
    reports it.

    Output schemas are removed: the SDK would apply them to results, which may never end (see
    `check_arguments`).
    """
    entries: list[Any] = page["tools"]
    if _fault({**page, "tools": []}, version):
        return entries, []
    kept, dropped, looked = list[Any](), list[str](), 0
    for number, entry in enumerate(entries, 1):
        name = entry.get("name") if isinstance(entry, dict) else None
        if wanted and not (isinstance(name, str) and name in wanted):
            continue
        looked += 1
        if looked > MOST_LISTED:
            dropped.append(f"a page lists more than {MOST_LISTED} tools: the others are left out")
            break
        if fault := _fault({**page, "tools": [entry]}, version) or _bad_header(entry, version):
            shown = name if isinstance(name, str) and name.strip() else f"tool {number}"
            dropped.append(reason_for(shown, fault))
        else:
            kept.append({key: value for key, value in entry.items() if key != "outputSchema"})
    return kept, dropped


def reason_for(name: str, fault: object) -> str:
    return one_line(visible_text(f"{name[:LONGEST_TOOL_NAME]}: {fault}"), LONGEST_REASON)


def _fault(page: dict[str, Any], version: str) -> str:
    """Why the SDK could not read the page; empty if it can."""
    try:
        validate_server_result(LIST_TOOLS, version, page)
        types.ListToolsResult.model_validate(page, by_name=False)
    except KeyError:
        return ""  # a version without rules in the SDK
    except ValidationError as error:
        return _first_fault(error)
    except (ValueError, RecursionError) as error:
        return str(error)
    return ""


def _first_fault(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    place = ".".join(str(part) for part in first["loc"] if part not in {"tools", 0})
    return f"{place}: {first['msg']}" if place else first["msg"]


def _bad_header(entry: Mapping[str, Any], version: str) -> str:
    """Why the SDK would silently drop the tool."""
    if version not in MODERN_PROTOCOL_VERSIONS:
        return ""
    fault = find_invalid_x_mcp_header(entry["inputSchema"])
    return f"x-mcp-header: {fault}" if fault else ""


def check_name(name: str) -> None:
    """Raises ValueError for a name that could be misread or is too long."""
    if len(name) > LONGEST_TOOL_NAME:
        raise ValueError(f"its name has more than {LONGEST_TOOL_NAME} characters")
    if visible_text(name) != name or not name.isprintable():
        raise ValueError("its name has characters that cannot be seen")


def clean_description(text: str) -> str:
    """A server's text about a tool, without invisible characters and role markers."""
    short = shorten(visible_text(text[: 2 * LONGEST_DESCRIPTION]).strip(), LONGEST_DESCRIPTION)
    return without_role_markers(short)


def clean_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema with its prose cleaned. Raises ValueError if it is invalid or too large, or if a
    name or value has invisible characters or role markers: those are sent back, so they cannot be
    changed.
    """
    if len(json.dumps(schema)) > LONGEST_SCHEMA:
        raise ValueError(f"its schema has more than {LONGEST_SCHEMA} characters")
    try:
        FORM.validate_python(schema, strict=True)
    except ValidationError as error:
        raise ValueError(f"its schema is none: {_first_fault(error)}") from None
    cleaned: dict[str, Any] = _cleaned(schema)
    return cleaned


def _cleaned(value: Any, *, is_data: bool = False) -> Any:
    match value:
        case str():
            if without_role_markers(visible_text(value)) != value:
                raise ValueError("its schema has characters that cannot be seen or are markers")
            return value
        case list():
            return [_cleaned(each, is_data=is_data) for each in value]
        case dict():
            return {
                _cleaned(key): clean_description(each)
                if key in PROSE and isinstance(each, str) and not is_data
                else _cleaned(each, is_data=is_data or key in DATA)
                for key, each in value.items()
            }
        case _:
            return value


def check_arguments(schema: Mapping[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """The arguments with the schema's defaults. Raises InvalidArguments for missing ones.

    The server checks the rest: applying a malicious schema may never end (its patterns, its
    references to itself).
    """
    filled: dict[str, Any] = fill_defaults(given, schema, schema)
    required = schema.get("required")
    names = required if isinstance(required, list) else []
    if missing := tuple(f"{name}: required" for name in names if name not in filled):
        raise InvalidArguments("; ".join(missing), fields=missing)
    return filled


def digest_of(tool: types.Tool) -> str:
    """A hex digest of everything a server says about a tool."""
    said = tool.model_dump(mode="json", by_alias=True, exclude={"meta", "icons"})
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()[:16]
