"""The words between us and a model: messages, tool calls, what a request asks and what an answer
holds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal, Protocol, TypeAlias

NOTED = "(noted)"
"""Stands for an answer where a vendor wants one and none was given; a model that says it back has
said nothing.
"""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call the model made. `arguments` is its raw text, exactly as it came.

    `extras` are vendor fields to send back unchanged (Gemini's signatures), as JSON text.
    """

    id: str
    name: str
    arguments: str
    extras: str = ""


@dataclass(frozen=True, slots=True)
class Reasoning:
    """A model's thoughts, and where they came from, so that they go back only to whom they belong.

    `field` is the wire name it came under; `details` the vendor's structured form as JSON text.
    """

    text: str
    endpoint: str = ""
    model: str = ""
    field: str = ""
    details: str = ""


@dataclass(frozen=True, slots=True)
class SystemMessage:
    text: str
    type: Literal["system"] = "system"


@dataclass(frozen=True, slots=True)
class UserMessage:
    """People's words, as the model reads them; `images` are data urls."""

    text: str
    images: tuple[str, ...] = ()
    type: Literal["user"] = "user"


@dataclass(frozen=True, slots=True)
class AssistantMessage:
    """The model's answer: words, calls, or both."""

    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    reasoning: Reasoning | None = None
    type: Literal["assistant"] = "assistant"


@dataclass(frozen=True, slots=True)
class ToolMessage:
    """The one result of one call; `images` are data urls, for a model that sees.

    `code` is the stable word of a failure, empty where there was none (or in what an older version
    wrote down). `text` is `content` under the name that words have everywhere else.
    """

    call_id: str
    name: str
    content: str
    is_error: bool = False
    images: tuple[str, ...] = ()
    code: str = ""
    type: Literal["tool"] = "tool"

    @property
    def text(self) -> str:
        """The words the model reads."""
        return self.content


Message: TypeAlias = SystemMessage | UserMessage | AssistantMessage | ToolMessage


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as the model sees it: a flat JSON schema (no `$ref`, `anyOf`, type lists)."""

    name: str
    description: str
    parameters: dict[str, Any] = field(hash=False)


class Allowance(Protocol):
    """Who says whether a request that failed may be made once more."""

    def again(self) -> bool:
        """Count one more attempt; False where it may not be made."""
        ...


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One request. No tools means that no `tools` key is sent.

    `allowance` is asked before each attempt but the first; without one there may be any number.
    """

    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    allowance: Allowance | None = field(default=None, compare=False, repr=False)

    def may_be_made_again(self) -> bool:
        """Whether one more attempt may be made; it is counted."""
        return self.allowance is None or self.allowance.again()


class FinishReason(StrEnum):
    """Why the model stopped, in our words. `UNKNOWN` is fine when there is text or a call."""

    STOP = "stop"
    TOOL_CALLS = "tool_calls"
    LENGTH = "length"
    CONTENT_FILTER = "content_filter"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens. `prompt` includes `cached`, `completion` includes `reasoning`.

    `cost` is in US dollars, the vendor's own figure or by its prices; None where nobody knows,
    never 0 for that.
    """

    prompt: int = 0
    completion: int = 0
    cached: int = 0
    reasoning: int = 0
    cost: float | None = None

    def __add__(self, other: Usage) -> Usage:
        known = [cost for cost in (self.cost, other.cost) if cost is not None]
        return Usage(
            self.prompt + other.prompt,
            self.completion + other.completion,
            self.cached + other.cached,
            self.reasoning + other.reasoning,
            sum(known) if known else None,
        )


@dataclass(frozen=True, slots=True)
class Completion:
    """A finished answer. `refusal` is the model's own refusal in words; `usage` is None when the
    vendor did not say.

    `first_token` is in seconds from the request to the first piece of a streamed answer, None where
    it is not known. `model` is what the vendor calls the model, `endpoint` what we call who
    answered: the `name` of that `ChatModel`.
    """

    message: AssistantMessage
    finish: FinishReason
    usage: Usage | None = None
    refusal: str = ""
    model: str = ""
    response_id: str = ""
    first_token: float | None = field(default=None, compare=False)
    endpoint: str = ""
