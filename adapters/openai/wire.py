"""Domain <-> wire: a `ModelRequest` as the body of a request, an `Answer` as a `Completion`.

The body is the intersection of what every vendor takes (quirks.md section 9): no tool choice, no sampling, no limits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, assert_never

import orjson

from adapters.openai.answer import Answer, RawCall, mend, to_json
from adapters.openai.dialects import Dialect
from bot.domain.chat import (
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
from bot.domain.errors import ContextOverflow, ModelError, ModelOverloaded, ModelTransport, ToolUseFailed

NO_OUTPUT = "(no output)"  # an empty tool message is refused by some (6.9)

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

CACHED = ("prompt_cache_hit_tokens", "cached_tokens", "cache_read_input_tokens", "num_cached_tokens")


@dataclass(frozen=True, slots=True)
class Origin:
    """Whose words an answer holds, so that they go back only there: the host, the model's configured name."""

    endpoint: str
    model: str


# --- domain -> wire -------------------------------------------------------------------------------


def write_request(request: ModelRequest, *, origin: Origin, dialect: Dialect, stream_options: bool) -> bytes:
    """The body of the request, as JSON. `stream_options` asks for the usage at the end of the stream."""
    body: dict[str, Any] = {
        "model": origin.model,
        "messages": [_write_message(message, origin, dialect) for message in request.messages],
        "stream": True,
    }
    if stream_options:
        body["stream_options"] = {"include_usage": True}
    if request.tools:
        body["tools"] = _write_tools(request.tools)
    return _encode(body)


@lru_cache(maxsize=64)
def _write_tools(tools: tuple[ToolSpec, ...]) -> orjson.Fragment:
    """The tools as JSON; a bot offers the same ones in every request."""
    return orjson.Fragment(_encode([_write_tool(tool) for tool in tools]))


def _write_message(message: Message, origin: Origin, dialect: Dialect) -> dict[str, Any]:
    match message:
        case SystemMessage(text=text):
            return {"role": "system", "content": text}
        case UserMessage(text=text, images=()):
            return {"role": "user", "content": text}
        case UserMessage(text=text, images=images):
            parts: list[dict[str, Any]] = [{"type": "text", "text": text}] if text else []
            parts += ({"type": "image_url", "image_url": {"url": url}} for url in images)
            return {"role": "user", "content": parts}
        case AssistantMessage():
            return _write_assistant(message, origin, dialect)
        case ToolMessage(call_id=call_id, content=content):
            return {"role": "tool", "tool_call_id": call_id, "content": content or NO_OUTPUT}
        case _:
            assert_never(message)


def _write_assistant(message: AssistantMessage, origin: Origin, dialect: Dialect) -> dict[str, Any]:
    written: dict[str, Any] = {"role": "assistant", "content": message.text}
    if message.tool_calls:
        written["tool_calls"] = [_write_call(call, dialect) for call in message.tool_calls]
        written.update(_write_reasoning(message.reasoning, origin, dialect))
    return written


def _write_call(call: ToolCall, dialect: Dialect) -> dict[str, Any]:
    arguments = call.arguments if isinstance(_parse(call.arguments), dict) else "{}"  # 3.9
    written = {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}}
    extras = _parse(call.extras) if dialect.call_extras and call.extras else None
    return {**extras, **written} if isinstance(extras, dict) else written


def _write_reasoning(reasoning: Reasoning | None, origin: Origin, dialect: Dialect) -> dict[str, Any]:
    """What goes back of a turn's reasoning: only to the endpoint and model it came from (section 5)."""
    own = reasoning is not None and Origin(reasoning.endpoint, reasoning.model) == origin
    match dialect.reasoning:
        case "none":
            return {}
        case "reasoning_details":
            details = _parse(reasoning.details) if reasoning is not None and own and reasoning.details else None
            return {"reasoning_details": details} if details else {}
        case "reasoning_content":
            text = reasoning.text if reasoning is not None and own and reasoning.text else dialect.backfill
            return {} if text is None else {"reasoning_content": text}


def _write_tool(tool: ToolSpec) -> dict[str, Any]:
    function = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    return {"type": "function", "function": function}


def _encode(body: dict[str, Any] | list[dict[str, Any]]) -> bytes:
    """JSON without what breaks servers: NUL and halves of characters, both found in messages from QQ (6.18)."""
    try:
        encoded = orjson.dumps(body)
    except TypeError:
        return orjson.dumps(_scrub(body))
    return orjson.dumps(_scrub(body)) if b"\\u0000" in encoded else encoded


def _scrub(value: Any) -> Any:
    match value:
        case str():
            return mend(value.replace("\0", ""))
        case dict():
            return {_scrub(key): _scrub(item) for key, item in value.items()}
        case list() | tuple():
            return [_scrub(item) for item in value]
        case _:
            return value


def _parse(text: str) -> object:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return None


# --- wire -> domain -------------------------------------------------------------------------------


def read_answer(answer: Answer, *, origin: Origin, new_id: Callable[[], str]) -> Completion:
    """The answer in our words. `new_id` makes ids for calls that came without one, or with another's.

    Raises ModelError where the finish reason says that this is no answer (1.8), ModelTransport for an empty answer
    that does not say why it ended (1.7), ToolUseFailed where all there is are calls without a name (4.7).
    """
    finish = _read_finish(answer)
    calls = _read_calls(answer, new_id)
    text = answer.text or answer.refusal
    if not calls and not text and finish is not FinishReason.LENGTH:
        if answer.tool_calls:
            raise ToolUseFailed("the model called a tool without naming it")
        if finish is FinishReason.UNKNOWN:
            raise ModelTransport("the answer was empty and gave no reason")
    if calls and finish in {FinishReason.STOP, FinishReason.UNKNOWN}:  # 1.6
        finish = FinishReason.TOOL_CALLS
    elif not calls and finish is FinishReason.TOOL_CALLS:
        finish = FinishReason.STOP
    return Completion(
        message=AssistantMessage(text=text, tool_calls=calls, reasoning=_read_reasoning(answer, origin)),
        finish=finish,
        usage=read_usage(answer.usage) if answer.usage else None,
        refusal=answer.refusal,
        model=answer.model,
        response_id=answer.id,
    )


def _read_finish(answer: Answer) -> FinishReason:
    for reason in filter(None, (answer.native_finish_reason, answer.finish_reason)):
        meaning = FINISHES.get(reason.lower())
        if meaning is not None and not isinstance(meaning, FinishReason):
            raise meaning(f"the vendor gave up on the answer: {reason}", code=reason)
    known = FINISHES.get((answer.finish_reason or "").lower())
    return known if isinstance(known, FinishReason) else FinishReason.UNKNOWN


def _read_calls(answer: Answer, new_id: Callable[[], str]) -> tuple[ToolCall, ...]:
    """The calls that name a tool, each with an id of its own (2.10, 2.14, 4.7)."""
    raw = answer.tool_calls or ((answer.function_call,) if answer.function_call else ())
    calls: list[ToolCall] = []
    taken: set[str] = set()
    for call in raw:
        if not call.name:
            continue
        identity = call.id if call.id and call.id not in taken else new_id()
        taken.add(identity)
        calls.append(_read_call(call, identity))
    return tuple(calls)


def _read_call(call: RawCall, identity: str) -> ToolCall:
    extras = to_json(call.extras) if call.extras else ""
    return ToolCall(id=identity, name=call.name, arguments=call.arguments or "", extras=extras)


def _read_reasoning(answer: Answer, origin: Origin) -> Reasoning | None:
    if not answer.reasoning and not answer.reasoning_details:
        return None
    return Reasoning(
        text=answer.reasoning,
        endpoint=origin.endpoint,
        model=origin.model,
        field=answer.reasoning_field,
        details=to_json(answer.reasoning_details) if answer.reasoning_details else "",
    )


def read_usage(usage: Mapping[str, Any]) -> Usage:
    """Tokens under whichever names a vendor counts them (section 8); what is missing or null counts as 0."""
    prompt_details, completion_details = (
        details if isinstance(details := usage.get(f"{side}_tokens_details"), dict) else {}
        for side in ("prompt", "completion")
    )
    cached = (_count(prompt_details.get("cached_tokens")), *(_count(usage.get(name)) for name in CACHED))
    cost = usage.get("cost")
    if isinstance(cost, dict):  # Perplexity's is itemised
        cost = cost.get("total_cost")
    return Usage(
        prompt=_count(usage.get("prompt_tokens")),
        completion=_count(usage.get("completion_tokens")),
        cached=next(filter(None, cached), 0),
        reasoning=_count(completion_details.get("reasoning_tokens")) or _count(usage.get("reasoning_tokens")),
        cost=float(cost) if isinstance(cost, int | float) else None,
    )


def _count(value: object) -> int:
    return max(0, int(value)) if isinstance(value, int | float) and math.isfinite(value) else 0
