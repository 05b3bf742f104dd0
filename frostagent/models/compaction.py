"""Shortens prompts: first old tool results, to head and tail, then whole rounds. Pure.

Cuts are made only before a user message, so that a call keeps its result.
"""

from __future__ import annotations

from itertools import takewhile

from msgspec.structs import replace

from frostagent.models.request_repairs import earlier_rounds, without_messages, without_pictures
from frostagent.models.tokens import estimate, estimate_message
from frostagent.types.messages import Message, ModelRequest, SystemMessage, ToolMessage, UserMessage

LONG = 800  # characters: shorter results are unchanged,
HEAD, TAIL = 400, 200  # longer ones keep this much
VERY_LONG = 200  # the same, if even the current question's results are too large
SHORT_HEAD, SHORT_TAIL = 80, 40
LEFT_OUT = "\n[{number} characters left out]\n"

LARGEST_ANSWER = 4096  # tokens reserved for the answer, at most; a quarter of a small window
LEAST_HISTORY = 300.0  # tokens: at least the last answer, whatever the window


def trim_tool_results(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """The messages with long tool results cut; the same object if none is long."""
    light = tuple(map(_light, messages))
    return messages if light == messages else light


def shrink_request(request: ModelRequest, *, to: float) -> ModelRequest | None:
    """The request shrunk to `to` estimated tokens, or as far as possible. None if unchanged.

    In order: results of earlier rounds are cut, the oldest rounds dropped, results of the latest
    question cut, its pictures dropped. System messages and that question stay.
    """
    if estimate(request) <= to:
        return None
    shrunk = _with_light_past(request)
    if estimate(shrunk) > to:
        shrunk = _without_oldest(shrunk, to)
    for cut in (_light, _tiny):
        for index, message in enumerate(shrunk.messages):
            if isinstance(message, ToolMessage) and estimate(shrunk) > to:
                before, after = shrunk.messages[:index], shrunk.messages[index + 1 :]
                shrunk = replace(shrunk, messages=(*before, cut(message), *after))
    if estimate(shrunk) > to:
        shrunk = without_pictures(shrunk) or shrunk
    return None if shrunk == request else shrunk


def prompt_room(window: int) -> int:
    """The tokens of a context window that a prompt may use."""
    return window - min(LARGEST_ANSWER, window // 4)


def history_room(most: float, *, window: int | None, scale: float, around: float) -> float:
    """The estimated tokens of history to send with each question.

    `most` is the operator's limit in the model's own tokens, `scale` the model's tokens per
    estimated token. A scale below 1 gives no more room: it is unknown after a restart, and the
    history would shrink then. A small window leaves less: what is `around` the history (system
    messages and tools, in estimated tokens) and the answer must fit, and as much again for the
    question and its tools.
    """
    paid = most / max(1.0, scale)
    if window is None:
        return paid
    return max(LEAST_HISTORY, min(paid, (prompt_room(window) / scale - around) / 2))


def _light(message: Message) -> Message:
    return _cut(message, LONG, HEAD, TAIL) if isinstance(message, ToolMessage) else message


def _tiny(message: Message) -> Message:
    return (
        _cut(message, VERY_LONG, SHORT_HEAD, SHORT_TAIL)
        if isinstance(message, ToolMessage)
        else message
    )


def _cut(result: ToolMessage, longest: int, head: int, tail: int) -> ToolMessage:
    """The result's head and tail; shorter than `longest`, so it is cut only once."""
    text = result.content
    if len(text) <= longest:
        return result
    left_out = LEFT_OUT.format(number=len(text) - head - tail)
    return replace(result, content=f"{text[:head]}{left_out}{text[-tail:]}")


def _with_light_past(request: ModelRequest) -> ModelRequest:
    past = earlier_rounds(request)
    system = tuple(takewhile(lambda message: isinstance(message, SystemMessage), request.messages))
    rest = request.messages[len(system) + len(past) :]
    return replace(request, messages=(*system, *trim_tool_results(past), *rest))


def _without_oldest(request: ModelRequest, to: float) -> ModelRequest:
    past = earlier_rounds(request)
    surplus, gone = estimate(request) - to, 0
    for index, message in enumerate(past):
        if surplus <= 0 and isinstance(message, UserMessage):
            break
        surplus -= estimate_message(message)
        gone = index + 1
    return without_messages(request, past[:gone])
