"""The recorded conversations of several turns, in our words: what was asked, and what was answered."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from frostagent.models.openai.vendor_text import to_json
from frostagent.types.messages import (
    AssistantMessage,
    Message,
    SystemMessage,
    ToolCall,
    ToolMessage,
    ToolSpec,
    UserMessage,
)
from tests.frostagent.openai.corpus import Record

DIALECT_OF = {
    "anthropic-compat": "anthropic",
    "azure": "openai",
    "gemini-compat": "gemini",
    "vercel-gateway": "openrouter",
    "zhipu-zai": "glm",
}
"""Whose rules a recorded vendor has, where its name does not say it and it is not a plain one."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One request and its answer. `messages` are what the client of then sent, `said` those new since the last turn."""

    name: str
    vendor: str
    status: int
    messages: tuple[Message, ...]
    said: tuple[Message, ...]
    tools: tuple[ToolSpec, ...]
    body: bytes
    failed: bool


def read_sessions(records: Iterable[Record]) -> list[list[Turn]]:
    """The conversations of more than one turn, each in its order."""
    by_session: dict[tuple[str, str], list[Mapping[str, Any]]] = defaultdict(list)
    for data in records:
        request = data["request"]["json"]
        if data["turns"] > 1 and request and not data["request"]["truncated"]:
            by_session[data["provider"], data["session"]].append(data)
    return [_read_session(sorted(turns, key=lambda data: data["turn"])) for turns in by_session.values()]


def _read_session(turns: list[Mapping[str, Any]]) -> list[Turn]:
    session: list[Turn] = []
    before: list[Any] = []
    for data in turns:
        request = data["request"]["json"]
        messages = request["messages"]
        follows = messages[: len(before)] == before
        said = (
            [message for message in messages[len(before) :] if message["role"] != "assistant"] if follows else messages
        )
        session.append(
            Turn(
                name=data["id"],
                vendor=data["provider"],
                status=data["response"]["status"],
                messages=tuple(read_messages(messages)),
                said=tuple(read_messages(said)),
                tools=tuple(_read_tool(tool["function"]) for tool in request.get("tools") or () if "function" in tool),
                body=data["response"]["body"].encode(),
                failed=bool(data["expect"]["error"]),
            )
        )
        before = messages
    return session


def read_messages(messages: list[Mapping[str, Any]]) -> Iterator[Message]:
    """What any client sent, as our transcript would have it."""
    for message in messages:
        text = _text(message.get("content"))
        match message["role"]:
            case "system" | "developer":
                yield SystemMessage(text)
            case "user":
                parts = message["content"] if isinstance(message["content"], list) else ()
                urls = (part["image_url"]["url"] for part in parts if part.get("type") == "image_url")
                yield UserMessage(text, tuple(urls))
            case "assistant":
                yield AssistantMessage(text, tuple(map(_read_call, message.get("tool_calls") or ())))
            case "tool":
                yield ToolMessage(message["tool_call_id"], "", text)
            case _:
                pass  # `function`, of an API older than calls with ids


def _read_call(call: Mapping[str, Any]) -> ToolCall:
    function = call.get("function") or {}
    extras = {key: value for key, value in call.items() if key not in {"id", "type", "index", "function", "custom"}}
    return ToolCall(call["id"], function.get("name", ""), function.get("arguments") or "", to_json(extras))


def _read_tool(function: Mapping[str, Any]) -> ToolSpec:
    return ToolSpec(function["name"], function.get("description") or "", function.get("parameters") or {})


def _text(content: object) -> str:
    if isinstance(content, list):
        return "".join(part.get("text", "") for part in content if isinstance(part.get("text", ""), str))
    return content if isinstance(content, str) else ""
