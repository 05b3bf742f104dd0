"""Writes a `ModelRequest` as a request body, and reads a `RawAnswer` as a `Completion`.

The body has only what every vendor accepts (vendors.md section 9): no tool choice but `none`, no
sampling, no limits.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeGuard, assert_never

import orjson
from msgspec.structs import replace

from frostagent.models.openai.answer import RawAnswer
from frostagent.models.openai.dialects import Dialect
from frostagent.models.openai.history import Origin, parse, prepare_history, prepare_tools
from frostagent.models.openai.leaks import has_citations, may_leak, split_leaks, without_citations
from frostagent.models.openai.tools import names_back, read_name
from frostagent.models.openai.vendor_text import repair_text, to_json
from frostagent.types.errors import (
    ContextOverflow,
    ModelError,
    ModelOverloaded,
    ModelTransport,
    ToolUseFailed,
)
from frostagent.types.messages import (
    AssistantMessage,
    Completion,
    FinishReason,
    Message,
    ModelRequest,
    Reasoning,
    SystemMessage,
    ToolCall,
    ToolMessage,
    ToolSpec,
    Usage,
    UserMessage,
)

MAX_COUNT = 2**53  # larger counts are nonsense, and no database could store them
TICKS = 1e10  # ticks per US dollar, for xAI

FINISHES: Mapping[str, FinishReason | type[ModelError]] = {
    "stop": FinishReason.STOP,
    "eos": FinishReason.STOP,
    "end": FinishReason.STOP,
    "end_turn": FinishReason.STOP,
    "stop_sequence": FinishReason.STOP,
    "tool_calls": FinishReason.TOOL_CALLS,
    "tool_use": FinishReason.TOOL_CALLS,
    "function_call": FinishReason.TOOL_CALLS,
    "length": FinishReason.LENGTH,
    "max_tokens": FinishReason.LENGTH,
    "content_filter": FinishReason.CONTENT_FILTER,
    "sensitive": FinishReason.CONTENT_FILTER,
    "model_context_window_exceeded": ContextOverflow,
    "network_error": ModelTransport,
    "malformed_function_call": ModelTransport,
    "insufficient_system_resource": ModelOverloaded,
    "error": ModelOverloaded,
}

COMPLETE = frozenset({FinishReason.STOP, FinishReason.TOOL_CALLS, FinishReason.UNKNOWN})

LARGEST = sys.float_info.max  # an integer may be larger, and is no count

CACHED = (
    "prompt_cache_hit_tokens",
    "cached_tokens",
    "cache_read_input_tokens",
    "num_cached_tokens",
)


# --- writing --------------------------------------------------------------------------------------


def write_request(
    request: ModelRequest,
    *,
    origin: Origin,
    dialect: Dialect,
    stream_options: bool,
    response_format: Mapping[str, Any] | None = None,
) -> bytes:
    """The request body as JSON, with its history prepared. `stream_options` asks for the usage at
    the end of the stream.
    """
    prepared: list[Message] = []
    if (messages := write_plain(request.messages)) is None:
        prepared = prepare_history(request.messages, origin=origin, dialect=dialect)
        messages = [_write_message(message, dialect) for message in prepared]
    body: dict[str, Any] = {
        "model": origin.model,
        "messages": messages,
        "stream": True,
    }
    if stream_options:
        body["stream_options"] = {"include_usage": True}
    if response_format is not None:
        body["response_format"] = response_format
    if request.temperature is not None:
        body["temperature"] = request.temperature
    if request.tools:
        body["tools"] = _write_tools(request.tools, dialect)
        if not request.calls:
            body["tool_choice"] = "none"
    elif dialect.tools_stay and (tools := _tools_of(prepared)):
        body["tools"] = _write_tools(tools, dialect)
        body["tool_choice"] = "none"
    return _encode(body)


@lru_cache(maxsize=64)
def _write_tools(tools: tuple[ToolSpec, ...], dialect: Dialect) -> orjson.Fragment:
    """The tools as JSON; cached, because a bot offers the same ones in every request."""
    return orjson.Fragment(
        orjson.dumps([_scrub(_write_tool(tool, dialect)) for tool in prepare_tools(tools, dialect)])
    )


def _tools_of(messages: Iterable[Message]) -> tuple[ToolSpec, ...]:
    """The tools a history has called, for a vendor that refuses calls without tools (4.8)."""
    calls = (
        call
        for message in messages
        if isinstance(message, AssistantMessage)
        for call in message.tool_calls
    )
    nothing = {"type": "object", "properties": {}}
    return tuple(
        ToolSpec(name, "Not to be called now.", nothing)
        for name in dict.fromkeys(call.name for call in calls)
    )


def write_plain(messages: Sequence[Message]) -> list[dict[str, Any]] | None:
    """A simple history as it is: text only, user and assistant alternating, the user first and
    last. None for any other.

    Most histories are simple, long, and written anew for each request: class patterns take twice as
    long.
    """
    bodies: list[dict[str, Any]] = []
    texts: list[str] = []
    role = ""
    for one in messages:
        if type(one) is UserMessage and role != "user" and not one.images:
            role = "user"
        elif type(one) is AssistantMessage and role == "user" and not one.tool_calls:
            if one.reasoning:
                return None
            role = "assistant"
        elif type(one) is SystemMessage and not role:
            role = "system"
        else:
            return None
        texts.append(one.text)
        bodies.append({"role": role, "content": one.text})
    is_plain = all(texts) and not any(map(str.isspace, texts)) and "\0" not in "".join(texts)
    return bodies if role == "user" and is_plain else None


def _write_message(message: Message, dialect: Dialect) -> dict[str, Any]:
    match message:
        case UserMessage():
            content = _write_parts(message) if message.images else message.text
            return {"role": "user", "content": content}
        case AssistantMessage():
            body: dict[str, Any] = {"role": "assistant", "content": message.text}
            if message.tool_calls:
                body["tool_calls"] = [_write_call(call) for call in message.tool_calls]
                body |= _write_reasoning(message.reasoning, dialect)
            return body
        case ToolMessage():
            return {"role": "tool", "tool_call_id": message.call_id, "content": message.content}
        case SystemMessage():
            return {"role": "system", "content": message.text}
        case _:
            assert_never(message)


def _write_parts(message: UserMessage) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = [{"type": "text", "text": message.text}] if message.text else []
    parts += ({"type": "image_url", "image_url": {"url": url}} for url in message.images)
    return parts


def _write_call(call: ToolCall) -> dict[str, Any]:
    function = {"name": call.name, "arguments": call.arguments}
    extras = _scrub(parse(call.extras)) if call.extras else {}
    return {**extras, "id": call.id, "type": "function", "function": function}


def _write_reasoning(reasoning: Reasoning | None, dialect: Dialect) -> dict[str, Any]:
    """The reasoning under its vendor's field; `prepare_history` decides what is sent."""
    if reasoning is None:
        return {}
    match dialect.reasoning:
        case "none":
            return {}
        case "reasoning_details":
            return (
                {"reasoning_details": _scrub(parse(reasoning.details))} if reasoning.details else {}
            )
        case "reasoning_content":
            return (
                {"reasoning_content": reasoning.text}
                if reasoning.text or dialect.backfill is not None
                else {}
            )


def _write_tool(tool: ToolSpec, dialect: Dialect) -> dict[str, Any]:
    function: dict[str, Any] = {"name": tool.name, "description": tool.description}
    if tool.parameters["properties"] or dialect.empty_parameters:
        function["parameters"] = tool.parameters
    return {"type": "function", "function": function}


def _encode(body: dict[str, Any]) -> bytes:
    """JSON; if that fails, without the lone surrogates that chats contain (6.18)."""
    try:
        return orjson.dumps(body)
    except TypeError:
        return orjson.dumps(_scrub(body))


def _scrub(value: Any) -> Any:
    """The value without NUL and lone surrogates, which break servers (6.18)."""
    match value:
        case str():
            return repair_text(value.replace("\0", ""))
        case dict():
            return {_scrub(key): _scrub(item) for key, item in value.items()}
        case list() | tuple():
            return [_scrub(item) for item in value]
        case _:
            return value


# --- reading --------------------------------------------------------------------------------------


def read_answer(
    answer: RawAnswer,
    *,
    request: ModelRequest,
    origin: Origin,
    dialect: Dialect,
    new_id: Callable[[], str],
    first_token: float | None = None,
) -> Completion:
    """The answer to that request. `new_id` makes ids for calls without their own one. A valid JSON
    answer to a request for JSON is unchanged.

    `first_token` is the time in seconds from the request to the first piece of the answer, if
    known. Raises ModelError if the finish reason means failure (1.8), ModelTransport for an empty
    answer without a reason (1.7), ToolUseFailed for calls without a name (4.7) or a call written as
    unusable text (4.4).
    """
    finish = _read_finish(answer)
    is_value = request.answer_schema is not None and _is_object(answer.text)
    if not is_value and may_leak(answer):
        whole = finish in COMPLETE and not answer.unexplained
        answer = split_leaks(
            answer,
            tools=prepare_tools(request.tools, dialect) if whole else (),
            given=_given(request),
            names=known_names(request),
            is_marked=dialect.leaks,
        )
    if dialect.answers_in_reasoning and not (answer.text or answer.refusal or answer.tool_calls):
        answer = replace(answer, text=answer.reasoning, reasoning="")
    calls = _read_calls(answer, request.tools, new_id)
    text = (answer.text if is_value else _said(answer.text, request)) or answer.refusal
    if not calls and answer.leaked:
        raise ToolUseFailed("the model wrote a tool call as text")
    if not calls and not text and finish is not FinishReason.LENGTH:
        if answer.tool_calls:
            raise ToolUseFailed("the model called a tool without naming it")
        if finish is FinishReason.UNKNOWN:
            raise ModelTransport("the answer was empty and gave no reason", code="empty")
    if calls and finish in {FinishReason.STOP, FinishReason.UNKNOWN}:  # 1.6
        finish = FinishReason.TOOL_CALLS
    elif not calls and finish is FinishReason.TOOL_CALLS:
        finish = FinishReason.STOP
    return Completion(
        message=AssistantMessage(text, calls, _read_reasoning(answer, origin)),
        finish=finish,
        usage=read_usage(answer.usage) if answer.usage else None,
        refusal=answer.refusal,
        model=answer.model,
        response_id=answer.id,
        endpoint=origin.name,
        first_token=first_token,
    )


def _is_object(text: str) -> bool:
    """Whether the text is exactly a JSON object, whose strings are then not filtered."""
    try:
        return isinstance(orjson.loads(text), dict)
    except ValueError:
        return False


def _said(text: str, request: ModelRequest) -> str:
    """The text without citation marks, except those that users wrote."""
    if not has_citations(text):
        return text
    asked = [one.text for one in request.messages if isinstance(one, UserMessage)]
    return without_citations(text, asked)


def known_names(request: ModelRequest) -> frozenset[str]:
    """All tool names in the request: those offered, and those called."""
    names = [tool.name for tool in request.tools]
    for message in request.messages:
        if isinstance(message, AssistantMessage):
            names += [call.name for call in message.tool_calls]
    return frozenset(names)


def _given(request: ModelRequest) -> tuple[str, ...]:
    """The text of others than the model in a request: repeating it is quoting, not calling."""
    said: list[str] = []
    for message in request.messages:
        if isinstance(message, UserMessage):
            said.append(message.text)
        elif isinstance(message, ToolMessage):
            said.append(message.content)
    return tuple(said)


def _read_finish(answer: RawAnswer) -> FinishReason:
    """The finish reason's meaning. A gateway's native reason may reveal a failure."""
    finish = FinishReason.UNKNOWN
    for reason in (answer.native_finish_reason, answer.finish_reason):
        meaning = (
            FINISHES.get(reason.lower(), FinishReason.UNKNOWN) if reason else FinishReason.UNKNOWN
        )
        if not isinstance(meaning, FinishReason):
            raise meaning(f"the vendor gave up on the answer: {reason}", code=reason or "")
        finish = meaning
    return finish


def _read_calls(
    answer: RawAnswer, tools: tuple[ToolSpec, ...], new_id: Callable[[], str]
) -> tuple[ToolCall, ...]:
    """The named calls, with our tool names and unique ids (2.10, 2.14, 4.6, 4.7)."""
    raw = answer.tool_calls or ((answer.function_call,) if answer.function_call else ())
    if not raw:
        return ()
    back = names_back(tools)
    calls: list[ToolCall] = []
    taken: set[str] = set()
    for call in raw:
        if not call.name:
            continue
        identity = call.id if call.id and call.id not in taken else new_id()
        taken.add(identity)
        extras = to_json(call.extras) if call.extras else ""
        calls.append(ToolCall(identity, read_name(call.name, back), call.arguments or "", extras))
    return tuple(calls)


def _read_reasoning(answer: RawAnswer, origin: Origin) -> Reasoning | None:
    """The reasoning, with its owner if fields of calls may be sent back (section 5)."""
    owned = answer.tool_calls and any(call.extras for call in answer.tool_calls)
    if not (answer.reasoning or answer.reasoning_details or owned):
        return None
    return Reasoning(
        text=answer.reasoning,
        endpoint=origin.endpoint,
        model=origin.model,
        field=answer.reasoning_field,
        details=to_json(answer.reasoning_details) if answer.reasoning_details else "",
    )


def read_usage(usage: Mapping[str, Any]) -> Usage:
    """Token counts under any vendor's names (section 8); missing ones are 0."""
    return Usage(
        prompt=_count(usage, "prompt_tokens"),
        completion=_count(usage, "completion_tokens"),
        cached=_count(usage.get("prompt_tokens_details"), "cached_tokens")
        or _count(usage, *CACHED),
        reasoning=_count(usage.get("completion_tokens_details"), "reasoning_tokens")
        or _count(usage, "reasoning_tokens"),
        cost=_read_cost(usage),
    )


def _count(figures: object, *names: str) -> int:
    """The first of these counts that is more than 0."""
    if isinstance(figures, dict):
        for name in names:
            if (value := figures.get(name)) and _is_figure(value) and value >= 1:
                return int(min(value, MAX_COUNT))
    return 0


def _read_cost(usage: Mapping[str, Any]) -> float | None:
    """The cost in US dollars, if reported."""
    cost, ticks = usage.get("cost"), usage.get("cost_in_usd_ticks")
    if cost is None and ticks is None:
        return None
    if isinstance(cost, dict):  # Perplexity's is itemised
        cost = cost.get("total_cost", cost.get("usd"))
    if _is_figure(cost):
        return float(cost)
    return float(ticks) / TICKS if _is_figure(ticks) else None


def _is_figure(value: object) -> TypeGuard[int | float]:
    """Whether it is a usable number; vendors also send null, NaN and negative ones."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= LARGEST
