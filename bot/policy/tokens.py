"""How many tokens a request will be, without anybody's tokenizer: so much for each letter, digit and CJK character.

The figures fit what vendors counted in recorded exchanges (tests/bot/policy/test_tokens.py says how well). How one
model counts differently is learned from the usage it reports: `Scale`.
"""

from __future__ import annotations

import json
import string
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import assert_never

from bot.domain.chat import AssistantMessage, Message, ModelRequest, SystemMessage, ToolMessage, ToolSpec, UserMessage

LETTER = 0.22
DIGIT = 0.5
SIGN = 0.45
BLANK = 0.06
CJK = 0.7  # about 1.5 characters a token (quirks.md section 8)
OTHER = 0.9  # emoji are more, Cyrillic is less

REQUEST = 3.0  # around everything
MESSAGE = 4.0  # around each message
CALL = 8.0  # around each tool call
TOOL = 8.0  # around each tool
TOOLS = 200.0  # what vendors tell a model about tools at all, 20 to 500
USUAL = 1000  # characters of a text whose estimate is remembered
PICTURE = 1000.0  # one of moderate size, as most vendors count it

LEARNING = 0.3  # how much the latest usage counts against all before
BOUNDS = (0.5, 3.0)  # a vendor that reports more or less than this counts something else

WEIGHTS: dict[bytes, tuple[float, Iterable[int]]] = {
    b"l": (LETTER, string.ascii_letters.encode()),
    b"d": (DIGIT, string.digits.encode()),
    b"b": (BLANK, string.whitespace.encode()),
    b"w": (CJK, (*range(0xE3, 0xEE), 0xEF)),  # U+3000 to U+DFFF and the full-width forms
    b"o": (OTHER, (*range(0xC2, 0xE3), 0xEE, *range(0xF0, 0xF5))),
    b"c": (0.0, range(0x80, 0xC0)),  # the further bytes of a character
}
"""What a character counts, by its first byte in UTF-8; the rest are signs, so the kinds are letters, which are none."""

CLASSES = bytes.maketrans(
    bytes(byte for _, group in WEIGHTS.values() for byte in group),
    b"".join(kind * len(bytes(group)) for kind, (_, group) in WEIGHTS.items()),
)


def estimate_text(text: str) -> float:
    """The tokens of a text. Each character adds the same wherever it stands, so longer texts never have fewer."""
    return _known(text) if len(text) <= USUAL else _count(text)


@lru_cache(maxsize=4096)
def _known(text: str) -> float:
    """The same texts are told again with every request of a conversation."""
    return _count(text)


def _count(text: str) -> float:
    kinds = text.encode("utf-8", "surrogatepass").translate(CLASSES)
    counts = {kind: kinds.count(kind) for kind in WEIGHTS}
    signs = len(kinds) - sum(counts.values())
    return SIGN * signs + sum(WEIGHTS[kind][0] * count for kind, count in counts.items())


def estimate(request: ModelRequest) -> float:
    """The tokens of a request as an average model counts them; its reasoning is not counted: few send it back."""
    return REQUEST + sum(map(estimate_message, request.messages)) + _estimate_tools(request.tools)


def estimate_message(message: Message) -> float:
    """The tokens of one message of a transcript."""
    match message:
        case SystemMessage(text=text):
            return MESSAGE + estimate_text(text)
        case UserMessage(text=text, images=images):
            return MESSAGE + estimate_text(text) + PICTURE * len(images)
        case AssistantMessage(text=text, tool_calls=calls):
            called = sum(CALL + estimate_text(call.name) + estimate_text(call.arguments) for call in calls)
            return MESSAGE + estimate_text(text) + called
        case ToolMessage(content=content, images=images):
            return MESSAGE + estimate_text(content) + PICTURE * len(images)
        case _:
            assert_never(message)


@lru_cache(maxsize=64)
def _estimate_tools(tools: tuple[ToolSpec, ...]) -> float:
    return sum(map(_estimate_tool, tools), TOOLS if tools else 0.0)


def _estimate_tool(tool: ToolSpec) -> float:
    schema = json.dumps(tool.parameters, ensure_ascii=False, separators=(",", ":"))
    return TOOL + sum(map(estimate_text, (tool.name, tool.description, schema)))


@dataclass(slots=True)
class Scale:
    """How many tokens one model counts where we estimate one, from what it reports; 1 until it has reported."""

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
