"""A call on its way through `bot/calls.py`: what is known of it, and what it leaves behind."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from bot.domain.arguments import Checked, parse_arguments
from bot.domain.chat import ToolCall, ToolMessage
from bot.domain.errors import InvalidArguments
from bot.domain.hooks import Metadata
from bot.domain.result import ToolResult, shorten
from bot.domain.tool import Tool, ToolContext
from bot.policy.repeats import Repeats

MAX_RESULT = 8000  # characters of one result that reach the model
MAX_RESULTS = 64_000  # characters of all results of a run
LEAST_RESULT = 200  # characters that every result has, whatever was there before

CODE = re.compile(r" \[TOOL_[A-Z_]+\]\Z")
"""How every failure ends."""


@dataclass(frozen=True, slots=True)
class Executed:
    """One finished call: its result, its stable code ("ok" or a TOOL_... word), and how long it took in seconds.

    `details` are for people only; `terminate` is the tool's wish that the run ends here; `arguments` are those it was
    run with, None where it never came to that, and `coerced` what was mended in them.
    """

    message: ToolMessage
    code: str
    seconds: float
    details: Mapping[str, Any] = field(default_factory=dict, hash=False)
    terminate: bool = False
    arguments: Mapping[str, Any] | None = field(default=None, hash=False)
    coerced: tuple[str, ...] = ()


@dataclass(slots=True)
class Tally:
    """What the calls of one run have come to so far. `left` is how many characters its results may still have.

    `is_over` says that the run must come to its end: it goes round in circles.
    """

    repeats: Repeats = field(default_factory=Repeats)
    left: int = MAX_RESULTS
    is_over: bool = False


@dataclass(slots=True)
class Flow:
    """A call on its way. `owes_after`: its before hooks were asked, so its after hooks will be."""

    call: ToolCall
    context: ToolContext
    started: float
    tool: Tool | None = None
    checked: Checked | None = None
    doing: str = "the tool"
    needs_word: bool = False
    owes_after: bool = False
    ran: bool = False
    result: ToolResult | None = None
    code: str = "ok"
    seconds: float = 0.0

    @property
    def may_change_something(self) -> bool:
        """Whether its body is still to come, and is not known to be harmless."""
        return self.result is None and self.tool is not None and not self.tool.side_effects.is_harmless

    @property
    def input(self) -> Mapping[str, Any]:
        """The arguments as far as they are known, as JSON has them."""
        if self.checked is not None:
            return self.checked.plain
        try:
            return parse_arguments(self.call.arguments)
        except InvalidArguments:
            return {}


def metadata_of(context: ToolContext) -> Metadata:
    """What leads a reader from a call to its step, its run and the model's answer that made it."""
    return {
        "run": context.run_id,
        "step": context.step,
        "call": context.call_id,
        "response": context.response_id,
        "conversation": str(context.conversation),
        "asker": context.asker.user_id,
    }


def as_told(result: ToolResult) -> ToolResult:
    """A failure that a tool tells by itself, in the words every failure has; anything else as it is."""
    if not result.is_error:
        return result
    start = "" if result.content.startswith("error: ") else "error: "
    end = "" if CODE.search(result.content) else " [TOOL_EXECUTION_FAILED]"
    return replace(result, content=f"{start}{result.content}{end}") if start or end else result


def with_left_out(result: ToolResult, checked: Checked) -> ToolResult:
    """The result with a line on what was left out of the arguments, so that the model knows it had no effect.

    A failure still ends in its code.
    """
    code = CODE.search(result.content) if result.is_error else None
    end = code.start() if code else len(result.content)
    notice = f"(Left out, no such parameter: {', '.join(checked.unknown)}.)"
    return replace(result, content=f"{result.content[:end]}\n{notice}{result.content[end:]}")


def told_with_images(result: ToolResult) -> str:
    """The text of a result, with a line for each picture: a model that sees gets them after it, in this order."""
    if not result.images:
        return result.content
    return "\n".join([result.content, *(f"[图片 {number}]" for number in range(1, len(result.images) + 1))])


def readable(text: str, limit: int) -> str:
    """Text that any vendor and store can take: not too long, and without half surrogates (they have no UTF-8)."""
    short = shorten(text, limit)
    return short if short.isascii() else short.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
