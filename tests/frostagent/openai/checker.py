"""What vendors refuse, as a judge of request bodies: vendors.md section 6, written down once more for the tests.

It shares nothing with the code it judges: its rows are its own, and it reads bodies as a vendor does, from the wire.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

Body = Mapping[str, Any]
Complaints = Iterator[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Vendor:
    """What one vendor is particular about.

    `reasoning` judges the value of `field` on a turn with calls (None where it is absent); `fields` are the vendor's
    own ones that it takes beside a call. `alternates`: no neighbours of one role.
    """

    ids: str = r"[A-Za-z0-9_.:-]{1,64}"
    alternates: bool = True
    user_after_tool: bool = True
    images: bool = True
    json_results: bool = False
    tools_with_calls: bool = False
    signed: bool = False
    field: str = ""
    reasoning: Callable[[Any], bool] = lambda value: True
    fields: frozenset[str] | None = None
    schema_words: frozenset[str] | None = None
    empty_parameters: bool = True


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


NOTHING: frozenset[str] = frozenset()

VENDORS: Mapping[str, Vendor] = {
    "plain": Vendor(),
    "openai": Vendor(ids=r"[A-Za-z0-9_-]{1,40}", alternates=False, fields=NOTHING),
    "mistral": Vendor(ids=r"[A-Za-z0-9]{9}", user_after_tool=False, fields=NOTHING),
    "groq": Vendor(fields=NOTHING),
    "anthropic": Vendor(ids=r"[A-Za-z0-9_-]{1,64}", tools_with_calls=True, fields=NOTHING),
    "gemini": Vendor(
        json_results=True,
        signed=True,
        schema_words=frozenset({
            "type", "format", "description", "enum", "items", "properties", "required", "minimum", "maximum",
            "minItems", "maxItems", "minLength", "maxLength", "pattern", "minProperties", "maxProperties",
        }),
        empty_parameters=False,
    ),
    "openrouter": Vendor(field="reasoning_details", reasoning=lambda value: value is None or bool(value)),
    "dashscope": Vendor(alternates=False),
    "stepfun": Vendor(),
    "deepseek": Vendor(alternates=False, images=False, field="reasoning_content", reasoning=_is_text),
    "kimi": Vendor(
        ids=r"(functions\.)?[\w-]+:\d+",
        field="reasoning_content",
        reasoning=lambda value: _is_text(value) and bool(value.strip()),
    ),
    "mimo": Vendor(field="reasoning_content", reasoning=_is_text),
    "glm": Vendor(field="reasoning_content", reasoning=lambda value: value is None or _is_text(value)),
}  # fmt: skip

NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
PICTURE = re.compile(r"data:image/(png|jpeg|gif|webp);base64,.")
NO_SCHEMA = frozenset({"$schema", "$id", "$ref", "$defs", "definitions", "anyOf", "oneOf", "allOf", "const", "strict"})
KINDS = frozenset({"string", "number", "integer", "boolean", "object", "array"})
BODY = frozenset({"model", "messages", "stream", "stream_options", "tools"})


def complaints(body: Body, name: str) -> list[str]:
    """Why this vendor would refuse the body; nothing where it takes it."""
    vendor = VENDORS[name]
    messages = body["messages"]
    found = [*_order(messages, vendor), *_pairs(messages), *_tools(body, vendor)]
    for index, message in enumerate(messages):
        found += (f"messages[{index}]: {complaint}" for complaint in _message(message, vendor))
    try:
        if "\0" in json.dumps(body, ensure_ascii=False).encode().decode() or "\\u0000" in json.dumps(body):
            found.append("NUL in a text (6.18)")
    except UnicodeEncodeError:
        found.append("half a character in a text (6.18)")
    return found


# --- messages -------------------------------------------------------------------------------------


def _order(messages: list[Any], vendor: Vendor) -> Complaints:
    roles = [message["role"] for message in messages]
    if "system" in roles[1:]:
        yield "a system message that is not the first (6.5)"
    said = [role for role in roles if role != "system"]
    if said[:1] != ["user"]:
        yield "the first message is not the user's (6.3)"
    if roles[-1:] not in (["user"], ["tool"]):
        yield "the last message is neither a user's nor a result (6.3)"
    for before, after in pairwise(said):
        if vendor.alternates and before == after != "tool":
            yield f"{before} after {after} (6.4)"
        if not vendor.user_after_tool and (before, after) == ("tool", "user"):
            yield "user after tool"


def _pairs(messages: list[Any]) -> Complaints:
    """Each call has one result, right behind it (6.1)."""
    wanted: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            if message.get("tool_call_id") not in wanted:
                yield "a result without its call (6.1)"
            else:
                wanted.remove(message["tool_call_id"])
            continue
        if wanted:
            yield "a call without its result (6.1)"
        wanted = [call["id"] for call in message.get("tool_calls", ())]
        if len(set(wanted)) < len(wanted):
            yield "two calls of one id (6.8)"
    if wanted:
        yield "a call without its result (6.1)"


def _message(message: Body, vendor: Vendor) -> Complaints:
    content = message.get("content")
    match message["role"]:
        case "system":
            yield from _keys(message, {"role", "content"})
            yield from _text(content)
        case "user":
            yield from _keys(message, {"role", "content"})
            yield from _parts(content, vendor) if isinstance(content, list) else _text(content)
        case "assistant":
            yield from _assistant(message, vendor)
        case "tool":
            yield from _keys(message, {"role", "content", "tool_call_id"})
            yield from _text(content)
            if vendor.json_results and not isinstance(_load(content), dict):
                yield "a result that is no JSON object (6.9)"
        case role:
            yield f"unknown role {role}"


def _assistant(message: Body, vendor: Vendor) -> Complaints:
    calls = message.get("tool_calls")
    content = message.get("content")
    if not isinstance(content, str) or not (content.strip() or calls):
        yield "neither content nor tool_calls (6.2)"
    if calls is None:
        yield from _keys(message, {"role", "content"})
        return
    yield from _keys(message, {"role", "content", "tool_calls", vendor.field})
    if not calls:
        yield "an empty list of calls (6.2)"
    if vendor.field and not vendor.reasoning(message.get(vendor.field)):
        yield f"{vendor.field} is missing (section 5)"
    for index, call in enumerate(calls):
        yield from _call(call, vendor)
        if vendor.signed and index == 0 and not _is_signed(call):
            yield "the first call of a step has no thought_signature (section 5)"


def _call(call: Body, vendor: Vendor) -> Complaints:
    if vendor.fields is not None:
        yield from _keys(call, {"id", "type", "function", *vendor.fields})
    yield from _keys(call["function"], {"name", "arguments"})
    if call["type"] != "function":
        yield "a call of another type"
    if not re.fullmatch(vendor.ids, call["id"], re.ASCII):
        yield f"id {call['id']!r} (6.8)"
    if not NAME.fullmatch(call["function"]["name"]):
        yield f"name {call['function']['name']!r} (6.6)"
    arguments = call["function"]["arguments"]
    if not isinstance(arguments, str) or not isinstance(_load(arguments), dict):
        yield "arguments that are no JSON object (3.9)"


def _is_signed(call: Body) -> bool:
    match call:
        case {"extra_content": {"google": {"thought_signature": str(signature)}}}:
            return bool(signature)
        case _:
            return False


def _keys(value: Body, known: set[str]) -> Complaints:
    for key in value.keys() - known:
        yield f"unknown field {key}"


def _text(content: Any) -> Complaints:
    if not isinstance(content, str):
        yield "content is no string (6.9)"
    elif not content.strip():
        yield "empty content (6.2)"


def _parts(content: list[Any], vendor: Vendor) -> Complaints:
    if not vendor.images or not content:
        yield "content is an array (6.17)"
    for part in content:
        match part:
            case {"type": "text", "text": text}:
                yield from _text(text)
            case {"type": "image_url", "image_url": {"url": str(url)}}:
                if not PICTURE.match(url):
                    yield "a picture that is no data url of a known kind (6.16)"
            case _:
                yield "a part that is neither text nor picture"


def _load(text: Any) -> Any:
    try:
        return json.loads(text)
    except (TypeError, ValueError):
        return None


# --- tools ----------------------------------------------------------------------------------------


def _tools(body: Body, vendor: Vendor) -> Complaints:
    has_calls = any(message.get("tool_calls") for message in body["messages"])
    choice = {"tool_choice"} if vendor.tools_with_calls and has_calls else set()
    yield from _keys(body, {*BODY, *choice})
    if body.get("tool_choice", "none") != "none":
        yield "tool_choice (6.11)"
    if vendor.tools_with_calls and has_calls and not body.get("tools"):
        yield "calls without tools (4.8)"
    if body.get("tools") == []:
        yield "an empty list of tools"
    names = [tool["function"]["name"] for tool in body.get("tools", ())]
    if len(set(names)) < len(names):
        yield "two tools of one name"
    for tool in body.get("tools", ()):
        function = tool["function"]
        yield from _keys(function, {"name", "description", "parameters"})
        if not NAME.fullmatch(function["name"]):
            yield f"name {function['name']!r} (6.6)"
        parameters = function.get("parameters")
        if parameters is None or (not parameters.get("properties") and not vendor.empty_parameters):
            if (parameters is None) is vendor.empty_parameters:
                yield "empty parameters (6.10)"
            continue
        if parameters.get("type") != "object" or not isinstance(parameters.get("properties"), dict):
            yield "parameters are no object (6.10)"
        yield from _schema(parameters, vendor)


def _schema(schema: Body, vendor: Vendor) -> Complaints:
    for word in schema:
        if word in NO_SCHEMA or (vendor.schema_words is not None and word not in vendor.schema_words):
            yield f"{word} in a schema (6.10)"
    if schema.get("type") not in KINDS:
        yield f"type {schema.get('type')!r} (6.10)"
    if schema.get("type") == "array" and not isinstance(schema.get("items"), dict):
        yield "an array without items (6.10)"
    properties = schema.get("properties", {})
    if not set(schema.get("required", ())) <= properties.keys():
        yield "an unknown property is required"
    for inner in (*properties.values(), *filter(None, [schema.get("items")])):
        yield from _schema(inner, vendor)
