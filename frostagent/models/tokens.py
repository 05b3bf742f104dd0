"""How many tokens a request will be, without anybody's tokenizer: so much for each letter, digit
and CJK character.

The figures fit what vendors counted in recorded exchanges (`test_tokens.py` says how well). How
one model counts differently is learned from the usage it reports: `Scale`.
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
CJK = 0.7  # about 1.5 characters a token (vendors.md section 8)
OTHER = 0.9  # emoji are more, Cyrillic is less

REQUEST = 3.0  # around everything
MESSAGE = 4.0  # around each message
CALL = 8.0  # around each tool call
TOOL = 8.0  # around each tool
TOOLS = 200.0  # what vendors tell a model about tools at all, 20 to 500
PICTURE = 1000.0  # one of moderate size, as most vendors count it

LEARNING = 0.3  # how much the latest usage counts against all before
BOUNDS = (0.5, 3.0)  # a vendor that reports more or less than this counts something else

WEIGHTS: tuple[tuple[bytes, float], ...] = (
    (string.ascii_letters.encode(), LETTER),
    (bytes(range(0x80, 0xC0)), 0.0),  # the further bytes of a character
    (bytes((*range(0xE3, 0xEE), 0xEF)), CJK),  # U+3000 to U+DFFF and the full-width forms
    (string.whitespace.encode(), BLANK),
    (string.digits.encode(), DIGIT),
    (bytes((*range(0xC2, 0xE3), 0xEE, *range(0xF0, 0xF5))), OTHER),
)
"""What a character counts, by its first byte in UTF-8, the most frequent first; all the rest are
signs.
"""


def estimate_text(text: str) -> float:
    """The tokens of a text. Each character adds the same wherever it stands, so longer texts never
    have fewer.

    Each kind is taken out of the text in turn: what it is shorter by is how many there were.
    """
    left = text.encode("utf-8", "surrogatepass")
    tokens, length = 0.0, len(left)
    for kind, weight in WEIGHTS:
        left = left.translate(None, kind)
        tokens += weight * (length - len(left))
        length = len(left)
    return tokens + SIGN * length


def estimate(request: ModelRequest) -> float:
    """The tokens of a request as an average model counts them; its reasoning is not counted: few
    send it back.
    """
    rest, known = _without(request.counted, request.messages)
    return REQUEST + known + estimate_messages(rest) + _estimate_tools(request.tools)


def _without(counted: Counted, messages: tuple[Message, ...]) -> tuple[tuple[Message, ...], float]:
    """The messages whose tokens nobody knows yet, and the tokens of the others. Messages that are
    the very same are found to be so in no time.
    """
    begin, end = counted.place, counted.place + len(counted.messages)
    if messages[begin:end] != counted.messages:  # somebody made others of them
        return messages, 0.0
    return messages[:begin] + messages[end:], counted.tokens


def estimate_messages(messages: Collection[Message]) -> float:
    """The tokens of a part of a transcript. All it says is counted as one text: that takes the
    least time.
    """
    tokens, texts = MESSAGE * len(messages), []
    for message in messages:  # of a whole history: class patterns take twice the time
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
    """The tokens of one message of a transcript."""
    return estimate_messages((message,))


def estimate_answer(message: AssistantMessage) -> float:
    """The tokens a model wrote for this answer, its thoughts among them; 0 if it wrote nothing."""
    thoughts = estimate_text(message.reasoning.text) if message.reasoning else 0.0
    said = estimate_message(message) if message.text or message.tool_calls else 0.0
    return thoughts + said


@lru_cache(maxsize=4096)
def _estimate_system(text: str) -> float:
    """A system prompt is long, and the same in every request of a conversation."""
    return estimate_text(text)


@lru_cache(maxsize=64)
def _estimate_tools(tools: tuple[ToolSpec, ...]) -> float:
    return sum(map(_estimate_tool, tools), TOOLS if tools else 0.0)


def _estimate_tool(tool: ToolSpec) -> float:
    schema = json.dumps(tool.parameters, ensure_ascii=False, separators=(",", ":"))
    return TOOL + sum(map(estimate_text, (tool.name, tool.description, schema)))


@dataclass(slots=True)
class Scale:
    """How many tokens one model counts where we estimate one, from what it reports; 1 until it has
    reported.
    """

    factor: float = 1.0
    _known: bool = False

    def correct(self, estimated: float) -> int:
        """The estimate in this model's tokens."""
        return round(estimated * self.factor)

    def learn(self, estimated: float, reported: int) -> None:
        """The model counted so many; the latest counts most, and 0 is no count."""
        if reported <= 0 or estimated <= 0:
            return
        low, high = BOUNDS
        seen = min(high, max(low, reported / estimated))
        self.factor = self.factor * (1 - LEARNING) + seen * LEARNING if self._known else seen
        self._known = True
