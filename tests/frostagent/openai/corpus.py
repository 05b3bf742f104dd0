"""Exchanges with vendors: ours (`tests/data/providers`), and the shared recorded ones where they lie beside us.

A record has the `request`, the `response` (status, headers, body), and in `expect` what a client must have read in the
end: text, reasoning, refusal, tool_calls, finish_reason, usage, error. Ours also say of which `class` a refusal is, and
what of a leaky answer is left once it is `clean`.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

OURS = Path(__file__).parents[2] / "data" / "providers"
SHARED = Path(__file__).parents[4] / "shared" / "providers"

Record: TypeAlias = Mapping[str, Any]


@cache
def ours() -> tuple[Record, ...]:
    """The exchanges of our own making."""
    return tuple(json.loads(line) for line in (OURS / "exchanges.jsonl").read_text("utf-8").splitlines())


@cache
def shared() -> tuple[Record, ...]:
    """The shared recorded exchanges; none where that folder is absent."""
    files = sorted((SHARED / "recorded").glob("*.json"))
    return tuple({**json.loads(file.read_text("utf-8")), "id": file.stem} for file in files)


@cache
def refusals() -> tuple[Record, ...]:
    """Refusals of our making: vendor, status, body and what kind of refusal it is."""
    return tuple(json.loads(line) for line in (OURS / "errors.jsonl").read_text("utf-8").splitlines())


@cache
def shared_refusals() -> tuple[Record, ...]:
    """The shared quoted ones; none where that folder is absent."""
    file = SHARED / "quoted_errors.json"
    return tuple(json.loads(file.read_text("utf-8"))) if file.is_file() else ()


# --- features -------------------------------------------------------------------------------------

ENUMS = frozenset({"finish_reason", "role", "type", "object"})
"""Fields whose value is a feature; of all others, only its kind."""
ASIDE = re.compile(
    r"logprobs|filter_result|citations|search_results|annotations|timings|(provider|answer\.|chunk\.)_?metadata\."
    r"|cost_|_cost|usage_breakdown\.|copilot_usage\.|executed_tools\.|_time|usage\.usage|ephemeral|server_tool|_per_|_ms$"
)
"""What nobody reads, or reads by one name whatever else is beside it."""
LEAKS = ("<think>", "</think>", "<tool_call>", "<|im_end|>", "```json")


def features_of(record: Record) -> set[str]:
    """What an exchange shows, as lines of `features.txt`."""
    request, response = record["request"]["json"] or {}, record["response"]
    found = {f"vendor {record['provider']}", f"status {response['status']}", *_features_of_request(request)}
    body = response["body"]
    if response["status"] == 200 and record["stream"]:
        found |= _features_of_stream(body)
    else:
        found.update(_features_of_whole(body))
    calls = record["expect"]["tool_calls"]
    finish = record["expect"]["finish_reason"]
    found |= {f"arguments: {_arguments(call['arguments'])}" for call in calls}
    found |= {f"calls end in {finish!r}"} if calls else {f"words end in {finish!r}"}
    found |= {"several calls"} if len(calls) > 1 else set()
    return found | {f"text holds {mark}" for mark in LEAKS if mark in (record["expect"]["text"] or "")}


def features_of_refusal(refusal: Record) -> set[str]:
    """The same of a refusal alone."""
    return {f"vendor {refusal['provider']}: {refusal['kind']}, status {refusal['status']}"}


def _features_of_request(request: Mapping[str, Any]) -> Iterator[str]:
    yield from (f"asked with {key}" for key in request if key not in {"model", "messages", "stream", "user"})
    for message in request.get("messages", ()):
        role, content = message["role"], message.get("content", ...)
        yield f"{role} message: {_kind(content)}"
        yield from (f"{role} message has {key}" for key in message if key not in {"role", "content"})
        for part in content if isinstance(content, list) else ():
            yield f"{role} message with a part {part.get('type') if isinstance(part, dict) else _kind(part)}"


def _features_of_whole(body: str) -> Iterator[str]:
    if body[:1].isspace():
        yield "answer: blank first"
    try:
        content = json.loads(body)
    except ValueError:
        yield "answer: not JSON"
    else:
        yield from _paths("answer", content)


def _features_of_stream(body: str) -> set[str]:
    found: set[str] = set()
    chunks = []
    for line in body.splitlines():
        field, _, value = line.partition(":")
        if field == "data" and value.strip() == "[DONE]":
            found.add("stream: marked as done")
        elif field == "data":
            chunks.append(json.loads(value))
        elif line:
            found.add(f"stream: line {line[:7]!r}" if field else "stream: comment")
    if "stream: marked as done" not in found:
        found.add("stream: without a mark at its end")
    for chunk in chunks:
        found |= {*_paths("chunk", chunk), *_features_of_chunk(chunk)}
    return found | _features_of_order(chunks)


def _features_of_chunk(chunk: Mapping[str, Any]) -> Iterator[str]:
    choices = chunk.get("choices")
    if not choices:
        yield f"chunk: choices {_kind(choices)}, {'with' if chunk.get('usage') else 'without'} usage"
        return
    finish = choices[0].get("finish_reason")
    if chunk.get("usage"):
        yield f"chunk: usage beside a choice that is {'over' if finish else 'not over'}"
    if choices[0].get("index", 0):
        yield "chunk: of another candidate"
    calls = (choices[0].get("delta") or {}).get("tool_calls") or ()
    if len(calls) > 1:
        yield "chunk: several calls"
    for call in calls:
        function = call.get("function") or {}
        if function.get("name") and function.get("arguments") and _arguments(function["arguments"]) == "an object":
            yield "chunk: a whole call"


def _features_of_order(chunks: list[Mapping[str, Any]]) -> set[str]:
    """What only several chunks show together."""
    found: set[str] = set()
    choices = [one for chunk in chunks for one in chunk.get("choices") or () if not one.get("index")]
    ends = [index for index, one in enumerate(choices) if one.get("finish_reason")]
    if len(ends) != 1:
        found.add(f"stream: {'no' if not ends else 'several'} finish reasons")
    deltas = [one.get("delta") or {} for one in choices]
    if ends and any(delta.get("content") for delta in deltas[ends[0] + 1 :]):
        found.add("stream: words after its end")
    for part in ("id", "name"):
        calls = [call for delta in deltas for call in delta.get("tool_calls") or ()]
        given = [
            (call.get("index"), (call if part == "id" else call.get("function") or {}).get(part)) for call in calls
        ]
        if any(count > 1 for (index, value), count in Counter(given).items() if value and index is not None):
            found.add(f"stream: the {part} of a call again")
    return found


def _paths(where: str, value: object) -> Iterator[str]:
    """Each field with the kind of its value; an enumeration with its value."""
    match value:
        case dict():
            for key, inner in value.items():
                path = f"{where}.{key}"
                if ASIDE.search(path):
                    continue
                yield f"{path}: {inner if key in ENUMS else _kind(inner)}"
                yield from _paths(path, inner)
        case list():
            for inner in value:
                yield from _paths(where, inner)
        case _:
            pass


def _arguments(text: str | None) -> str:
    if not text:
        return _kind(text)
    try:
        content = json.loads(text)
    except ValueError:
        return "cut off"
    return "an object" if isinstance(content, dict) else _kind(content)


def _kind(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "bool"
        case int() | float():
            return "number"
        case str(text):
            return "text" if text else "empty text"
        case [] | {}:
            return "empty list" if value == [] else "object" if value else "empty object"
        case list():
            return "list"
        case _:
            return "absent"
