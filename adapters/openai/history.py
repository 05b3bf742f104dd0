"""A transcript as its next reader takes it: run before every request, whatever the transcript has been through.

Histories come here damaged by crashes and cuts, written for other vendors, or both; what leaves passes the strictest
reading of the vendor's rules (quirks.md section 6). Pure and idempotent; what is in order stays as it is, so that the
beginning of a prompt is the same from request to request.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, assert_never

import orjson

from adapters.openai.answer import CALL_FIELDS, mend, to_json
from adapters.openai.dialects import Dialect
from adapters.openai.names import write_id, write_name
from adapters.openai.schemas import write_schema
from bot.domain.chat import (
    AssistantMessage,
    Message,
    ModelRequest,
    Reasoning,
    SystemMessage,
    ToolCall,
    ToolMessage,
    ToolSpec,
    UserMessage,
)

NO_OUTPUT = "(no output)"  # an empty tool message is refused by some (6.9)
NO_RESULT = "error: the result of this call was lost; it may or may not have been done"
IMAGE_OMITTED = "[image omitted]"
FROM_TOOLS = "(pictures from the results of: {})"
EARLIER = "(earlier messages are not shown)"  # stands for the user that a transcript must begin with (6.3)
GO_ON = "(go on)"  # for the one that it must end with
NOTED = "(noted)"  # for the answer that somebody interrupted

PICTURE = re.compile(r"data:image/(png|jpeg|gif|webp);base64,[A-Za-z0-9+/]")  # what vision takes (6.16)
UNCHECKED = {"extra_content": {"google": {"thought_signature": "skip_thought_signature_validator"}}}


@dataclass(frozen=True, slots=True)
class Origin:
    """Whose words an answer holds, so that they go back only there: the host, the model's configured name."""

    endpoint: str
    model: str

    def owns(self, reasoning: Reasoning | None) -> bool:
        return reasoning is not None and Origin(reasoning.endpoint, reasoning.model) == self


def prepare_history(request: ModelRequest, *, origin: Origin, dialect: Dialect) -> ModelRequest:
    """The request as this endpoint, which speaks that dialect, takes it.

    One system message, first; then a user; every call followed at once by its one result, in call order; a user or a
    result last. Names, ids, reasoning, vendor fields, pictures and schemas are the dialect's.
    """
    cleaned = [clean for message in request.messages if (clean := _clean(message, origin, dialect)) is not None]
    system = "\n\n".join(message.text for message in cleaned if isinstance(message, SystemMessage))
    said = (message for message in cleaned if not isinstance(message, SystemMessage))
    messages = _begin_and_end(_join(_rename(_pair(said, dialect), dialect), dialect))
    head: tuple[Message, ...] = (SystemMessage(system),) if system else ()
    return ModelRequest((*head, *messages), prepare_tools(request.tools, dialect))


@lru_cache(maxsize=64)
def prepare_tools(tools: tuple[ToolSpec, ...], dialect: Dialect) -> tuple[ToolSpec, ...]:
    """The tools with names and schemas that the vendor takes; the same object for the same tools."""
    return tuple(
        ToolSpec(write_name(tool.name), _scrub(tool.description), write_schema(tool.parameters, dialect))
        for tool in tools
    )


# --- each message for itself ----------------------------------------------------------------------


def _clean(message: Message, origin: Origin, dialect: Dialect) -> Message | None:
    """The message in the dialect, None where nothing of it can be sent."""
    match message:
        case SystemMessage(text=text):
            return SystemMessage(text) if (text := _scrub(text)) else None
        case UserMessage(text=text, images=images):
            return _clean_user(_scrub(text), images, dialect)
        case AssistantMessage():
            return _clean_assistant(message, origin, dialect)
        case ToolMessage():
            return _clean_result(message, dialect)
        case _:
            assert_never(message)


def _clean_user(text: str, images: tuple[str, ...], dialect: Dialect) -> UserMessage | None:
    text, kept = _look(text, images, dialect)
    return UserMessage(text, kept) if text or kept else None


def _clean_result(message: ToolMessage, dialect: Dialect) -> ToolMessage:
    content, kept = _look(_scrub(message.content), message.images, dialect)
    content = content or NO_OUTPUT
    if dialect.json_results:
        content = _as_object(content)
    return replace(message, name=write_name(message.name), content=content, images=kept)


def _look(text: str, images: tuple[str, ...], dialect: Dialect) -> tuple[str, tuple[str, ...]]:
    """The pictures that can be seen; of the others the text says that they were there."""
    kept = tuple(url for url in images if PICTURE.match(url)) if dialect.images else ()
    words = [*filter(None, [text]), *[IMAGE_OMITTED] * (len(images) - len(kept))]
    return "\n".join(words), kept


def _clean_assistant(message: AssistantMessage, origin: Origin, dialect: Dialect) -> AssistantMessage | None:
    """Without calls of no name, which wedge a session (4.7), and without what this endpoint should not see again."""
    text = _scrub(message.text)
    own = origin.owns(message.reasoning)
    calls = tuple(
        ToolCall(call.id, write_name(call.name), _arguments(call.arguments), _extras(call.extras, dialect, own=own))
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
    """Exactly as they came, unless that is no JSON object: strict vendors refuse the whole history for it (3.9)."""
    return text if isinstance(parse(text), dict) else "{}"


def _extras(text: str, dialect: Dialect, *, own: bool) -> str:
    extras = parse(text) if text and own and dialect.extras != "drop" else None
    return text if isinstance(extras, dict) and CALL_FIELDS.isdisjoint(extras) else ""


def _is_signed(extras: str) -> bool:
    match parse(extras) if extras else None:
        case {"extra_content": {"google": {"thought_signature": str(signature)}}}:
            return bool(signature)
        case _:
            return False


def _reasoning(reasoning: Reasoning | None, origin: Origin, dialect: Dialect, *, kept: bool) -> Reasoning | None:
    """What goes back of a turn's reasoning: only to the endpoint and model it came from (section 5).

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
    return None if dialect.backfill is None else replace(owner, text=dialect.backfill, field=dialect.reasoning)


def _as_object(content: str) -> str:
    return content if isinstance(parse(content), dict) else to_json({"result": content})


def _scrub(text: str) -> str:
    """Without what breaks servers, NUL and halves of characters (6.18); nothing at all where only blanks are left."""
    text = mend(text.replace("\0", ""))
    return text if text.strip() else ""


def parse(text: str) -> Any:
    """What the JSON text stands for, None where it is none."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return None


# --- their order ----------------------------------------------------------------------------------


def _pair(messages: Iterable[Message], dialect: Dialect) -> list[Message]:
    """Each call followed at once by its one result (6.1).

    A result belongs to the last call of its id and name that still lacks one, wherever it stands after it; others are
    dropped, and what is missing is told as lost.
    """
    paired: list[tuple[Message, list[ToolMessage | None]]] = []
    open_calls: dict[tuple[str, str], list[tuple[list[ToolMessage | None], int]]] = {}
    for message in messages:
        if isinstance(message, ToolMessage):
            if places := open_calls.get((message.call_id, message.name)):
                results, index = places.pop(0)
                results[index] = message
            continue
        calls = message.tool_calls if isinstance(message, AssistantMessage) else ()
        results = [None] * len(calls)
        paired.append((message, results))
        latest: dict[tuple[str, str], list[tuple[list[ToolMessage | None], int]]] = {}
        for index, call in enumerate(calls):
            latest.setdefault((call.id, call.name), []).append((results, index))
        open_calls |= latest
    whole: list[Message] = []
    for message, results in paired:
        whole.append(message)
        if isinstance(message, AssistantMessage):
            found = [result or _lost(call, dialect) for call, result in zip(message.tool_calls, results, strict=True)]
            whole += (replace(result, images=()) for result in found)
            whole += _shown(found)
    return whole


def _shown(results: Iterable[ToolMessage]) -> Iterator[UserMessage]:
    """The pictures of a step's results, which are text only (6.9), behind them all."""
    seen = [result for result in results if result.images]
    if seen:
        images = tuple(url for result in seen for url in result.images)
        yield UserMessage(FROM_TOOLS.format(", ".join(result.name for result in seen)), images)


def _lost(call: ToolCall, dialect: Dialect) -> ToolMessage:
    content = _as_object(NO_RESULT) if dialect.json_results else NO_RESULT
    return ToolMessage(call.id, call.name, content, is_error=True)


def _rename(messages: Iterable[Message], dialect: Dialect) -> Iterator[Message]:
    """Ids in the vendor's alphabet, different in each step; results follow their calls, so they are in step."""
    count = 0
    ids: list[str] = []
    for message in messages:
        match message:
            case ToolMessage():
                yield replace(message, call_id=ids.pop(0))
            case AssistantMessage(tool_calls=calls) if calls:
                for index, call in enumerate(calls, count):
                    ids.append(write_id(call.id, call.name, index, ids, dialect))
                count += len(calls)
                renamed = (replace(call, id=identity) for call, identity in zip(calls, ids, strict=True))
                yield replace(message, tool_calls=tuple(renamed))
            case _:
                yield message


def _join(messages: Iterable[Message], dialect: Dialect) -> list[Message]:
    """Neighbours of one role made one (6.4); an answer between a result and the user who interrupted."""
    joined: list[Message] = []
    for message in messages:
        last = joined[-1] if joined else None
        match last, message:
            case UserMessage(), UserMessage() if dialect.merges:
                text = "\n\n".join(filter(None, (last.text, message.text)))
                joined[-1] = UserMessage(text, (*last.images, *message.images))
            case AssistantMessage(), AssistantMessage() if dialect.merges:
                joined[-1] = replace(message, text="\n\n".join(filter(None, (last.text, message.text))))
            case ToolMessage(), UserMessage() if dialect.bridges:
                joined += (AssistantMessage(NOTED), message)
            case _:
                joined.append(message)
    return joined


def _begin_and_end(messages: list[Message]) -> list[Message]:
    """A user first, and nobody's beginning of an answer last (6.3)."""
    if not messages or not isinstance(messages[0], UserMessage):
        messages.insert(0, UserMessage(EARLIER))
    if isinstance(messages[-1], AssistantMessage):
        messages.append(UserMessage(GO_ON))
    return messages
