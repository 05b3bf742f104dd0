"""Estimates tokens without a tokenizer: a weight for each letter, digit and CJK character.

The weights fit token counts in recorded exchanges (`test_tokens.py` measures how well). `Scale`
learns a model's deviation from the usage it reports.
"""

from __future__ import annotations

import json
import string
from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache

from frostagent.types.messages import (
    AssistantMessage,
    Counted,
    Message,
    ModelRequest,
    SystemMessage,
    ToolSpec,
)

LETTER = 0.22
DIGIT = 0.5
SIGN = 0.45
BLANK = 0.06
CJK = 0.7  # about 1.5 characters per token (vendors.md section 8)
OTHER = 0.9  # emoji take more, Cyrillic takes less

REQUEST = 3.0  # per request
MESSAGE = 4.0  # per message
CALL = 8.0  # per tool call
TOOL = 8.0  # per tool
TOOLS = 200.0  # vendors' own text about tools, 20 to 500
PICTURE = 1000.0  # a picture of moderate size, for most vendors

LEARNING = 0.3  # weight of the latest usage
BOUNDS = (0.5, 3.0)  # a vendor that reports more or less counts something else

WEIGHTS: tuple[tuple[bytes, float], ...] = (
    (string.ascii_letters.encode(), LETTER),
    (bytes(range(0x80, 0xC0)), 0.0),  # continuation bytes
    (bytes((*range(0xE3, 0xEE), 0xEF)), CJK),  # U+3000 to U+DFFF and the full-width forms
    (string.whitespace.encode(), BLANK),
    (string.digits.encode(), DIGIT),
    (bytes((*range(0xC2, 0xE3), 0xEE, *range(0xF0, 0xF5))), OTHER),
)
"""The weight of a character by its first UTF-8 byte; all others are signs."""


def estimate_text(text: str) -> float:
    """The tokens of a text. A character's weight does not depend on its position.

    Each kind is removed from the text in turn; the difference in length is its count.
    """
    left = text.encode("utf-8", "surrogatepass")
    tokens, length = 0.0, len(left)
    for kind, weight in WEIGHTS:
        left = left.translate(None, kind)
        tokens += weight * (length - len(left))
        length = len(left)
    return tokens + SIGN * length


def estimate(request: ModelRequest) -> float:
    """The tokens of a request for an average model, without reasoning, which is rarely sent."""
    rest, known = _without(request.counted, request.messages)
    return REQUEST + known + estimate_messages(rest) + _estimate_tools(request.tools)


def _without(counted: Counted, messages: tuple[Message, ...]) -> tuple[tuple[Message, ...], float]:
    """The messages without a known count, and the others' tokens. Fast for identical ones."""
    begin, end = counted.place, counted.place + len(counted.messages)
    if messages[begin:end] != counted.messages:  # the messages were changed
        return messages, 0.0
    return messages[:begin] + messages[end:], counted.tokens


def estimate_messages(messages: Collection[Message]) -> float:
    """The tokens of part of a transcript. Its texts are counted as one, for speed."""
    tokens, texts = MESSAGE * len(messages), []
    for message in messages:  # a whole history: class patterns take twice as long
        if isinstance(message, SystemMessage):
            tokens += _estimate_system(message.text)
            continue
        texts.append(message.text)
        if isinstance(message, AssistantMessage):
            for call in message.tool_calls:
                texts += (call.name, call.arguments)
                tokens += CALL
        elif message.images:
            tokens += PICTURE * len(message.images)
    return tokens + estimate_text("".join(texts))


def estimate_message(message: Message) -> float:
    return estimate_messages((message,))


def estimate_answer(message: AssistantMessage) -> float:
    """The tokens of an answer including its reasoning; 0 if it is empty."""
    thoughts = estimate_text(message.reasoning.text) if message.reasoning else 0.0
    said = estimate_message(message) if message.text or message.tool_calls else 0.0
    return thoughts + said


@lru_cache(maxsize=4096)
def _estimate_system(text: str) -> float:
    """Cached: a system prompt is long, and repeated in every request."""
    return estimate_text(text)


@lru_cache(maxsize=64)
def _estimate_tools(tools: tuple[ToolSpec, ...]) -> float:
    return sum(map(_estimate_tool, tools), TOOLS if tools else 0.0)


def _estimate_tool(tool: ToolSpec) -> float:
    schema = json.dumps(tool.parameters, ensure_ascii=False, separators=(",", ":"))
    return TOOL + sum(map(estimate_text, (tool.name, tool.description, schema)))


@dataclass(slots=True)
class Scale:
    """A model's tokens per estimated token, from reported usage; 1 until known."""

    factor: float = 1.0
    _known: bool = False

    def correct(self, estimated: float) -> int:
        """The estimate in this model's tokens."""
        return round(estimated * self.factor)

    def learn(self, estimated: float, reported: int) -> None:
        """Learn from a reported count. The latest weighs most; 0 is ignored."""
        if reported <= 0 or estimated <= 0:
            return
        low, high = BOUNDS
        seen = min(high, max(low, reported / estimated))
        self.factor = self.factor * (1 - LEARNING) + seen * LEARNING if self._known else seen
        self._known = True
