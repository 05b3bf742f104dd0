"""Adapts a transcript to its next reader, before every request.

Histories may be damaged by crashes and cuts, or written for other vendors; the result satisfies the
strictest reading of the vendor's rules (vendors.md section 6). Pure and idempotent. Valid parts are
unchanged, so that the prompt's beginning stays the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, assert_never

import orjson
from msgspec.structs import replace

from frostagent.models.openai.answer import CALL_FIELDS
from frostagent.models.openai.dialects import Dialect
from frostagent.models.openai.tools import write_id, write_name, write_schema
from frostagent.models.openai.vendor_text import repair_text, to_json
from frostagent.types.arguments import parse_arguments
from frostagent.types.errors import InvalidArguments
from frostagent.types.messages import (
    NOTED,
    AssistantMessage,
    Message,
    Reasoning,
    SystemMessage,
    ToolCall,
    ToolMessage,
    ToolSpec,
    UserMessage,
)

NO_OUTPUT = "(no output)"  # some vendors refuse an empty tool message (6.9)
NO_RESULT = "error: the result of this call was lost; it may or may not have been done"
IMAGE_OMITTED = "[image omitted: it could not be shown to you]"
FROM_TOOLS = "(pictures from the results of: {})"
# Replaces a missing first user message (6.3).
EARLIER = "(earlier messages are not shown)"
GO_ON = "(go on)"  # replaces a missing last one

PICTURE = re.compile(
    r"data:image/(png|jpeg|gif|webp);base64,[A-Za-z0-9+/]"
)  # formats that vision models accept (6.16)
UNCHECKED = {"extra_content": {"google": {"thought_signature": "skip_thought_signature_validator"}}}


@dataclass(frozen=True, slots=True)
class Origin:
    """Which model at which host produced an answer, so that its fields are sent back only there."""

    endpoint: str
    model: str

    @property
    def name(self) -> str:
        """Model and host, for logs."""
        return f"{self.model}@{self.endpoint}"

    def owns(self, reasoning: Reasoning | None) -> bool:
        return (
            reasoning is not None
            and reasoning.endpoint == self.endpoint
            and reasoning.model == self.model
        )


def prepare_history(
    messages: Sequence[Message], *, origin: Origin, dialect: Dialect
) -> list[Message]:
    """The transcript in the form that this endpoint and dialect accept.

    One system message first, then a user message; every call followed directly by its only result,
    in call order; a user message or a result last. Names, ids, reasoning, vendor fields and
    pictures follow the dialect. `wire` handles lone surrogates.
    """
    system: list[str] = []
    said: list[Message] = []
    for message in messages:
        if isinstance(message, SystemMessage):
            system.append(_scrub(message.text))
        elif clean := _clean(message, origin, dialect):
            said.append(clean)
    prepared = _begin_and_end(_join(_pair(said, dialect), dialect))
    if words := "\n\n".join(filter(None, system)):
        prepared.insert(0, SystemMessage(words))
    return prepared


@lru_cache(maxsize=64)
def prepare_tools(tools: tuple[ToolSpec, ...], dialect: Dialect) -> tuple[ToolSpec, ...]:
    """The tools with names and schemas the vendor accepts; cached."""
    return tuple(
        ToolSpec(
            write_name(tool.name), _scrub(tool.description), write_schema(tool.parameters, dialect)
        )
        for tool in tools
    )


# --- single messages ------------------------------------------------------------------------------


def _clean(
    message: UserMessage | AssistantMessage | ToolMessage, origin: Origin, dialect: Dialect
) -> Message | None:
    """The message in the dialect; None if nothing of it can be sent."""
    match message:
        case UserMessage():
            return _clean_user(message, dialect)
        case AssistantMessage():
            return _clean_assistant(message, origin, dialect)
        case ToolMessage():
            return _clean_result(message, dialect)
        case _:
            assert_never(message)


def _clean_user(message: UserMessage, dialect: Dialect) -> UserMessage | None:
    text, kept = _look(_scrub(message.text), message.images, dialect)
    return UserMessage(text, kept) if text or kept else None


def _clean_result(message: ToolMessage, dialect: Dialect) -> ToolMessage:
    content, kept = _look(
        repair_text(_scrub(message.content)), message.images, dialect
    )  # here, because it may become JSON in JSON
    content = content or NO_OUTPUT
    if dialect.json_results:
        content = _as_object(content)
    return ToolMessage(message.call_id, write_name(message.name), content, message.is_error, kept)


def _look(text: str, images: tuple[str, ...], dialect: Dialect) -> tuple[str, tuple[str, ...]]:
    """The usable pictures; the text mentions the others."""
    if not images:
        return text, images
    kept = (
        tuple(url for url in images if PICTURE.match(url) and "\0" not in url)
        if dialect.images
        else ()
    )
    words = [*filter(None, [text]), *[IMAGE_OMITTED] * (len(images) - len(kept))]
    return "\n".join(words), kept


def _clean_assistant(
    message: AssistantMessage, origin: Origin, dialect: Dialect
) -> AssistantMessage | None:
    """Without unnamed calls, which block a session (4.7), and foreign fields."""
    text = _scrub(message.text)
    own = origin.owns(message.reasoning)
    calls = tuple(
        ToolCall(
            call.id,
            write_name(call.name),
            _arguments(call.arguments),
            _extras(call.extras, dialect, own=own),
        )
        for call in message.tool_calls
        if call.name.strip()
    )
    if not calls:
        return AssistantMessage(text) if text else None
    if dialect.extras == "sign" and not _is_signed(calls[0].extras):
        calls = (replace(calls[0], extras=to_json(UNCHECKED)), *calls[1:])
    kept = any(call.extras for call in calls) and own
    return AssistantMessage(text, calls, _reasoning(message.reasoning, origin, dialect, kept=kept))


def _arguments(text: str) -> str:
    """The arguments as received if they are a JSON object: strict vendors refuse the whole history
    otherwise (3.9). Else as parsed, so that the model sees what was run, or {} if unreadable.
    """
    if isinstance(parse(text), dict):
        return text
    try:
        return to_json(parse_arguments(text))
    except InvalidArguments:
        return "{}"


def _extras(text: str, dialect: Dialect, *, own: bool) -> str:
    extras = parse(text) if text and own and dialect.extras != "drop" else None
    return text if isinstance(extras, dict) and CALL_FIELDS.isdisjoint(extras) else ""


def _is_signed(extras: str) -> bool:
    match parse(extras) if extras else None:
        case {"extra_content": {"google": {"thought_signature": str(signature)}}}:
            return bool(signature)
        case _:
            return False


def _reasoning(
    reasoning: Reasoning | None, origin: Origin, dialect: Dialect, *, kept: bool
) -> Reasoning | None:
    """The reasoning to send back: only to its own endpoint and model (section 5). `kept` means that
    fields of its calls are sent, so that their owner must stay known.
    """
    owner = Reasoning("", origin.endpoint, origin.model)
    own = reasoning if reasoning is not None and origin.owns(reasoning) else None
    match dialect.reasoning:
        case "none":
            return owner if kept else None
        case "reasoning_details":
            details = parse(own.details) if own is not None and own.details else None
            return own if isinstance(details, list) and details else owner if kept else None
        case "reasoning_content":
            if own is not None and (text := _scrub(own.text)):
                return replace(own, text=text)
            return owner if dialect.backfill is None and kept else _filled(owner, dialect)


def _filled(owner: Reasoning, dialect: Dialect) -> Reasoning | None:
    return (
        None
        if dialect.backfill is None
        else replace(owner, text=dialect.backfill, field=dialect.reasoning)
    )


def _as_object(content: str) -> str:
    return content if isinstance(parse(content), dict) else to_json({"result": content})


def _scrub(text: str) -> str:
    """The text without NUL, which breaks servers (6.18); empty if it is blank."""
    if "\0" in text:
        text = text.replace("\0", "")
    return "" if text.isspace() else text


def parse(text: str) -> Any:
    """The value of a JSON text; None if invalid."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return None


# --- order ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Step:
    """An answer that calls tools, and the results found so far."""

    answer: AssistantMessage
    results: list[ToolMessage | None]


def _pair(messages: Iterable[Message], dialect: Dialect) -> list[Message]:
    """Put each call's only result directly after it (6.1).

    A result belongs to the latest preceding call of its id and name without one. Others are
    dropped; missing ones are reported as lost.
    """
    paired: list[Message | _Step] = []
    open_calls: dict[tuple[str, str], list[tuple[_Step, int]]] = {}
    for message in messages:
        if isinstance(message, ToolMessage):
            if places := open_calls.get((message.call_id, message.name)):
                step, index = places.pop(0)
                step.results[index] = message
        elif isinstance(message, AssistantMessage) and message.tool_calls:
            step = _Step(message, [None] * len(message.tool_calls))
            paired.append(step)
            latest: dict[tuple[str, str], list[tuple[_Step, int]]] = {}
            for index, call in enumerate(message.tool_calls):
                latest.setdefault((call.id, call.name), []).append((step, index))
            open_calls |= latest
        else:
            paired.append(message)
    whole: list[Message] = []
    count = 0
    for part in paired:
        if isinstance(part, _Step):
            whole += _in_order(part, count, dialect)
            count += len(part.results)
        else:
            whole.append(part)
    return whole


def _in_order(step: _Step, count: int, dialect: Dialect) -> Iterator[Message]:
    """The calls, their results, and the pictures in them, with valid ids that differ in each step.
    `count` is the number of calls before.
    """
    calls = step.answer.tool_calls
    found = [
        result or _lost(call, dialect) for call, result in zip(calls, step.results, strict=True)
    ]
    ids: list[str] = []
    for index, call in enumerate(calls, count):
        ids.append(write_id(call.id, call.name, index, ids, dialect))
    renamed = (
        ToolCall(identity, call.name, call.arguments, call.extras)
        for identity, call in zip(ids, calls, strict=True)
    )
    yield AssistantMessage(step.answer.text, tuple(renamed), step.answer.reasoning)
    for identity, result in zip(ids, found, strict=True):
        yield ToolMessage(identity, result.name, result.content, result.is_error)
    yield from _shown(found)


def _shown(results: Iterable[ToolMessage]) -> Iterator[UserMessage]:
    """The pictures of a step's results, which are text only (6.9), after all of them."""
    seen = [result for result in results if result.images]
    if seen:
        images = tuple(url for result in seen for url in result.images)
        yield UserMessage(FROM_TOOLS.format(", ".join(result.name for result in seen)), images)


def _lost(call: ToolCall, dialect: Dialect) -> ToolMessage:
    content = _as_object(NO_RESULT) if dialect.json_results else NO_RESULT
    return ToolMessage(call.id, call.name, content, is_error=True)


def _join(messages: Iterable[Message], dialect: Dialect) -> list[Message]:
    """Merge consecutive messages of one role (6.4), and bridge a result and a user message."""
    joined: list[Message] = []
    last: Message | None = None
    for message in messages:
        if type(message) is not type(last) and not dialect.bridges:
            joined.append(message)
            last = message
            continue
        match last, message:
            case UserMessage(), UserMessage() if dialect.merges:
                text = "\n\n".join(filter(None, (last.text, message.text)))
                joined[-1] = UserMessage(text, (*last.images, *message.images))
            case AssistantMessage(), AssistantMessage() if dialect.merges:
                joined[-1] = replace(
                    message, text="\n\n".join(filter(None, (last.text, message.text)))
                )
            case ToolMessage(), UserMessage() if dialect.bridges:
                joined += (AssistantMessage(NOTED), message)
            case _:
                joined.append(message)
        last = joined[-1]
    return joined


def _begin_and_end(messages: list[Message]) -> list[Message]:
    """Ensure a user message first, and no assistant message last (6.3)."""
    if not messages or not isinstance(messages[0], UserMessage):
        messages.insert(0, UserMessage(EARLIER))
    if isinstance(messages[-1], AssistantMessage):
        messages.append(UserMessage(GO_ON))
    return messages
