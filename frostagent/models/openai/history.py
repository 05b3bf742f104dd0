"""A transcript as its next reader takes it: run before every request, whatever the transcript has
been through.

Histories come here damaged by crashes and cuts, written for other vendors, or both; what leaves
passes the strictest reading of the vendor's rules (vendors.md section 6). Pure and idempotent; what
is in order stays as it is, so that the beginning of a prompt is the same from request to request.
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

NO_OUTPUT = "(no output)"  # an empty tool message is refused by some (6.9)
NO_RESULT = "error: the result of this call was lost; it may or may not have been done"
IMAGE_OMITTED = "[image omitted: it could not be shown to you]"
FROM_TOOLS = "(pictures from the results of: {})"
# Stands for the user that a transcript must begin with (6.3).
EARLIER = "(earlier messages are not shown)"
GO_ON = "(go on)"  # for the one that it must end with

PICTURE = re.compile(
    r"data:image/(png|jpeg|gif|webp);base64,[A-Za-z0-9+/]"
)  # what vision takes (6.16)
UNCHECKED = {"extra_content": {"google": {"thought_signature": "skip_thought_signature_validator"}}}


@dataclass(frozen=True, slots=True)
class Origin:
    """Whose words an answer holds, so that they go back only there: the host, the model's
    configured name.
    """

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
    """The transcript as this endpoint, which speaks that dialect, takes it.

    One system message, first; then a user; every call followed at once by its one result, in call
    order; a user or a result last. Names, ids, reasoning, vendor fields and pictures are the
    dialect's. Halves of characters are left to `wire`, which sees them when it writes the JSON.
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
    """The tools with names and schemas that the vendor takes; the same object for the same
    tools.
    """
    return tuple(
        ToolSpec(
            write_name(tool.name), _scrub(tool.description), write_schema(tool.parameters, dialect)
        )
        for tool in tools
    )


# --- each message for itself ----------------------------------------------------------------------


def _clean(
    message: UserMessage | AssistantMessage | ToolMessage, origin: Origin, dialect: Dialect
) -> Message | None:
    """The message in the dialect, None where nothing of it can be sent."""
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
    )  # here, as it may become JSON in JSON
    content = content or NO_OUTPUT
    if dialect.json_results:
        content = _as_object(content)
    return ToolMessage(message.call_id, write_name(message.name), content, message.is_error, kept)


def _look(text: str, images: tuple[str, ...], dialect: Dialect) -> tuple[str, tuple[str, ...]]:
    """The pictures that can be seen; of the others the text says that they were there."""
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
    """Without calls of no name, which wedge a session (4.7), and without what this endpoint should
    not see again.
    """
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
    """Exactly as they came, unless that is no JSON object: strict vendors refuse the whole history
    for it (3.9).

    Then as they were read, so that the model sees with what its call was run; nothing where they
    could not be.
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
    """The part of a turn's reasoning that goes back: only to the endpoint and model it came from
    (section 5).

    `kept`: fields of its calls do, so whose they are stays known.
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
    """Without NUL, which breaks servers (6.18); nothing at all where only blanks are left."""
    if "\0" in text:
        text = text.replace("\0", "")
    return "" if text.isspace() else text


def parse(text: str) -> Any:
    """The value of a JSON text, None where it is none."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return None


# --- their order ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Step:
    """An answer that calls tools, and the results of those calls as far as they were found."""

    answer: AssistantMessage
    results: list[ToolMessage | None]


def _pair(messages: Iterable[Message], dialect: Dialect) -> list[Message]:
    """Each call followed at once by its one result (6.1).

    A result belongs to the last call of its id and name that still lacks one, wherever it stands
    after it; others are dropped, and what is missing is told as lost.
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
    """The calls, their results, then the pictures in them; ids in the vendor's alphabet, different
    in each step.

    `count` is that of all calls before it.
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
    """The pictures of a step's results, which are text only (6.9), behind them all."""
    seen = [result for result in results if result.images]
    if seen:
        images = tuple(url for result in seen for url in result.images)
        yield UserMessage(FROM_TOOLS.format(", ".join(result.name for result in seen)), images)


def _lost(call: ToolCall, dialect: Dialect) -> ToolMessage:
    content = _as_object(NO_RESULT) if dialect.json_results else NO_RESULT
    return ToolMessage(call.id, call.name, content, is_error=True)


def _join(messages: Iterable[Message], dialect: Dialect) -> list[Message]:
    """Neighbours of one role made one (6.4); an answer between a result and the user who
    interrupted.
    """
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
    """A user first, and nobody's beginning of an answer last (6.3)."""
    if not messages or not isinstance(messages[0], UserMessage):
        messages.insert(0, UserMessage(EARLIER))
    if isinstance(messages[-1], AssistantMessage):
        messages.append(UserMessage(GO_ON))
    return messages
