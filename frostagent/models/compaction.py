"""Prompts made shorter: old tool results first, to their head and tail, then whole rounds. Pure and
deterministic.

A cut is made before a user's message only, so a call is never parted from its result.
"""

from __future__ import annotations

from itertools import takewhile

from msgspec.structs import replace

from frostagent.models.request_repairs import earlier_rounds, without_messages, without_pictures
from frostagent.models.tokens import estimate, estimate_message
from frostagent.types.messages import Message, ModelRequest, SystemMessage, ToolMessage, UserMessage

LONG = 800  # characters: so long a result may be and stay as it is,
HEAD, TAIL = 400, 200  # else this is left of it
VERY_LONG = 200  # the same where even the question's own results are too much
SHORT_HEAD, SHORT_TAIL = 80, 40
LEFT_OUT = "\n[{number} characters left out]\n"

LARGEST_ANSWER = 4096  # tokens left to the answer, at most; of a small window its fourth part
LEAST_HISTORY = 300.0  # tokens: the last answer, however small the window is


def trim_tool_results(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """The messages with their long tool results cut; the very same object where none is long."""
    light = tuple(map(_light, messages))
    return messages if light == messages else light


def shrink_request(request: ModelRequest, *, to: float) -> ModelRequest | None:
    """The request in as many estimated tokens, or as few as it takes; None where nothing can go, or
    nothing has to.

    The results of earlier rounds are cut, then the oldest rounds go, then the results of the latest
    question are cut, then its pictures go. What the system says and that question stay.
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
    """The tokens of a context window that a prompt may have."""
    return window - min(LARGEST_ANSWER, window // 4)


def history_room(most: float, *, window: int | None, scale: float, around: float) -> float:
    """How many estimated tokens of a conversation are told again with each question.

    `most` is what the operator wants to pay for, in the model's own tokens: `scale` is how many it
    counts where we estimate one. A model that counts fewer gets no more: before it has reported,
    after each start, that is not known, and what was told would leave. A small window leaves less:
    what is `around` it (in estimated tokens: the system's words, the tools) and the answer have
    their place in it, and so has as much again for the question and its tools.
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
    """The result's beginning and end; it is shorter than `longest` then, so it is cut only once."""
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
