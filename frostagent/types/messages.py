"""Messages, tool calls, model requests and answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any, ClassVar, Literal, Protocol, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from frostagent.types.traits import Audience

NOTED = "(noted)"
"""A placeholder for an answer, for vendors that require one between a tool result and a user
message. Older versions stored it, too. A model that repeats it has said nothing.
"""


class ToolCall(Struct, frozen=True):
    """A tool call by the model. `arguments` is the raw text, exactly as received.

    `extras` are vendor fields to send back unchanged (Gemini's signatures), as JSON text.
    """

    id: str
    name: str
    arguments: str
    extras: str = ""


class Reasoning(Struct, frozen=True):
    """A model's reasoning and its origin, so that it is sent back only to the model that produced
    it.

    `field` is its name on the wire; `details` is the vendor's structured form as JSON text.
    """

    text: str
    endpoint: str = ""
    model: str = ""
    field: str = ""
    details: str = ""


class SystemMessage(Struct, frozen=True, tag="system"):
    """Instructions for the model."""

    text: str
    type: ClassVar[Literal["system"]] = "system"


class UserMessage(Struct, frozen=True, tag="user"):
    """A user message as the model reads it. `images` are data URLs.

    `sources` are the ids of the chat messages whose lines begin at column 0 of the text, in order;
    `quotes` pairs each that quotes another message with that message's id. Neither is sent to
    vendors.
    """

    text: str
    images: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    quotes: tuple[tuple[str, str], ...] = ()
    type: ClassVar[Literal["user"]] = "user"


def joined(messages: Sequence[UserMessage]) -> UserMessage:
    """Merge several into one: strict vendors refuse consecutive user messages."""
    if len(messages) == 1:
        return messages[0]
    images = tuple(image for message in messages for image in message.images)
    sources = tuple(source for message in messages for source in message.sources)
    quotes = tuple(quote for message in messages for quote in message.quotes)
    return UserMessage("\n".join(message.text for message in messages), images, sources, quotes)


class AssistantMessage(Struct, frozen=True, tag="assistant"):
    """The model's answer: text, calls, or both."""

    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    reasoning: Reasoning | None = None
    type: ClassVar[Literal["assistant"]] = "assistant"


class ToolMessage(Struct, frozen=True, tag="tool"):
    """The only result of a call. `images` are data URLs, for models with vision.

    `code` is the stable word of a failure, else empty (also in entries of older versions). The
    other fields are not sent to vendors: `sources` are the ids of the chat messages whose text it
    contains, `authority` the lowest of their senders; `tainted` means it may contain text from
    outside. `kept` replaces `content` when the message is stored; empty if they are the same.
    """

    call_id: str
    name: str
    content: str
    is_error: bool = False
    images: tuple[str, ...] = ()
    code: str = ""
    sources: tuple[str, ...] = ()
    authority: Audience = Audience.OWNER
    tainted: bool = False
    kept: str = ""
    type: ClassVar[Literal["tool"]] = "tool"

    @property
    def text(self) -> str:
        """The same as `content`: `text` is the common name in all messages."""
        return self.content


def as_kept(result: ToolMessage) -> ToolMessage:
    """The result as it is stored and shown to later runs."""
    return replace(result, content=result.kept, kept="") if result.kept else result


Message: TypeAlias = SystemMessage | UserMessage | AssistantMessage | ToolMessage


class ToolSpec(Struct, frozen=True):
    """A tool as the model sees it. `parameters` is a flat JSON schema, without `$ref`."""

    name: str
    description: str
    parameters: dict[str, Any]

    def __hash__(self) -> int:
        return hash(self.name)


# A Protocol because the engine, whose `BudgetShare` implements it, imports these types.
class Allowance(Protocol):
    """Decides whether a failed request may be repeated, and counts aborted requests."""

    @property
    def step(self) -> int:
        """The current step of the turn; 0 outside of one."""
        ...

    @property
    def is_first(self) -> bool:
        """Whether this is the first attempt of the first request of a question."""
        ...

    @property
    def is_short(self) -> bool:
        """Whether the request asks for the final answer, which is always allowed."""
        ...

    def again(self) -> bool:
        """Count one more attempt. False if it is not allowed."""
        ...

    def record_broken_off(self, model: str, usage: Usage) -> bool:
        """Count the usage, as far as known, of an attempt that was aborted from outside. Returns
        whether the caller that aborted it also records that usage.
        """
        ...


class Counted(Struct, frozen=True):
    """Messages with a stored token estimate. In a transcript they start at index `place`."""

    place: int
    messages: tuple[Message, ...]
    tokens: float


NOT_COUNTED = Counted(0, (), 0.0)


class TextDelta(Struct, frozen=True, tag="text_delta"):
    """More of the answer's text, with everything already removed that a filter would cut."""

    text: str
    type: ClassVar[Literal["text_delta"]] = "text_delta"


class ReasoningDelta(Struct, frozen=True, tag="reasoning_delta"):
    """More of the model's reasoning, as the vendor sends it."""

    text: str
    type: ClassVar[Literal["reasoning_delta"]] = "reasoning_delta"


class TextDiscarded(Struct, frozen=True, tag="text_discarded"):
    """Discard the text and reasoning of this answer so far: the request is repeated."""

    type: ClassVar[Literal["text_discarded"]] = "text_discarded"


Delta: TypeAlias = TextDelta | ReasoningDelta | TextDiscarded
OnDelta: TypeAlias = Callable[[Delta], None]


class ModelRequest(Struct, frozen=True):
    """One model request. Without `tools`, no `tools` key is sent.

    `allowance` is consulted before each attempt but the first; None means no limit. `temperature`
    is 0 to 2, and not sent if None. If `calls` is false, the tools are sent only to keep the prompt
    prefix the same, and none may be called. `counted` are messages with known token counts; the
    transcript may have changed since. Models in `passed_over` are tried last, because they gave no
    answer before. `about_pictures` means that the request makes no sense without its pictures.
    `on_delta` receives the answer as it streams in; a retry sends `TextDiscarded` first.
    `answer_schema` is the JSON schema of an object: the messages ask for such an answer, and models
    that can enforce it do.
    """

    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    allowance: Allowance | None = None
    temperature: float | None = None
    calls: bool = True
    counted: Counted = NOT_COUNTED
    passed_over: tuple[str, ...] = ()
    about_pictures: bool = False
    on_delta: OnDelta | None = None
    answer_schema: Mapping[str, Any] | None = None

    def __eq__(self, other: object) -> bool:  # nothing else matters for counting attempts or tokens
        if not isinstance(other, ModelRequest):
            return NotImplemented
        return (
            self.messages,
            self.tools,
            self.temperature,
            self.calls,
            self.answer_schema,
        ) == (other.messages, other.tools, other.temperature, other.calls, other.answer_schema)

    def __hash__(self) -> int:
        return hash((self.messages, self.tools))

    def may_be_made_again(self) -> bool:
        """Whether one more attempt is allowed. Counts it."""
        return self.allowance is None or self.allowance.again()


class FinishReason(StrEnum):
    """Why the model stopped. `UNKNOWN` is fine if there is text or a call."""

    STOP = "stop"
    TOOL_CALLS = "tool_calls"
    LENGTH = "length"
    CONTENT_FILTER = "content_filter"
    UNKNOWN = "unknown"


class Usage(Struct, frozen=True):
    """Token counts. `prompt` includes `cached`, `completion` includes `reasoning`.

    `cost` is in US dollars, as the vendor reports it or computed from prices; None if unknown,
    never 0 for that. `reserved` is the number of the reservation that this usage replaces, or 0.
    """

    prompt: int = 0
    completion: int = 0
    cached: int = 0
    reasoning: int = 0
    cost: float | None = None
    reserved: int = 0

    def __add__(self, other: Usage) -> Usage:
        known = [cost for cost in (self.cost, other.cost) if cost is not None]
        return Usage(
            self.prompt + other.prompt,
            self.completion + other.completion,
            self.cached + other.cached,
            self.reasoning + other.reasoning,
            sum(known) if known else None,
        )


class Completion(Struct, frozen=True):
    """A finished answer. `usage` is None if the vendor did not report it.

    `refusal` is the model's own refusal in words. `first_token` is in seconds from the request to
    the first piece of a streamed answer, or None. `model` is the vendor's name for the model,
    `endpoint` the `name` of the `ChatModel` that answered. If the request was sent twice
    (`asked_twice`), `usage` covers only the second.
    """

    message: AssistantMessage
    finish: FinishReason
    usage: Usage | None = None
    refusal: str = ""
    model: str = ""
    response_id: str = ""
    first_token: float | None = None
    endpoint: str = ""
    asked_twice: bool = False


class Dictation(Struct, frozen=True):
    """A transcription, and its usage if known."""

    text: str
    usage: Usage | None = None


class Attempt(Struct, frozen=True):
    """One request to the model named `endpoint`, which ended after `seconds`.

    `outcome` is `ok`, the kind of a `ModelError`, `cancelled` or `crashed`; `completion` is set
    only for `ok`. `status` is the HTTP status of an error, else 0.
    """

    endpoint: str
    outcome: str
    seconds: float
    completion: Completion | None = None
    status: int = 0
