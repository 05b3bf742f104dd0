"""The words between us and a model: messages, tool calls, what a request asks and what an answer
holds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any, ClassVar, Literal, Protocol, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from frostagent.types.traits import Audience

NOTED = "(noted)"
"""Stands for an answer where a vendor wants one between a result and a user, and stood for any that
was not given in older versions; a model that says it back has said nothing.
"""


class ToolCall(Struct, frozen=True):
    """A call the model made. `arguments` is its raw text, exactly as it came.

    `extras` are vendor fields to send back unchanged (Gemini's signatures), as JSON text.
    """

    id: str
    name: str
    arguments: str
    extras: str = ""


class Reasoning(Struct, frozen=True):
    """A model's thoughts, and where they came from, so that they go back only to whom they belong.

    `field` is the wire name it came under; `details` the vendor's structured form as JSON text.
    """

    text: str
    endpoint: str = ""
    model: str = ""
    field: str = ""
    details: str = ""


class SystemMessage(Struct, frozen=True, tag="system"):
    text: str
    type: ClassVar[Literal["system"]] = "system"


class UserMessage(Struct, frozen=True, tag="user"):
    """People's words, as the model reads them; `images` are data urls.

    `sources` are the ids of the messages whose lines begin at column 0 of the text, in order, and
    `quotes` pairs of those of them whose lines quote another one, and that one; no vendor gets
    them.
    """

    text: str
    images: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    quotes: tuple[tuple[str, str], ...] = ()
    type: ClassVar[Literal["user"]] = "user"


def joined(messages: Sequence[UserMessage]) -> UserMessage:
    """Several as one: two in a row are one to most models, and strict ones refuse them."""
    if len(messages) == 1:
        return messages[0]
    images = tuple(image for message in messages for image in message.images)
    sources = tuple(source for message in messages for source in message.sources)
    quotes = tuple(quote for message in messages for quote in message.quotes)
    return UserMessage("\n".join(message.text for message in messages), images, sources, quotes)


class AssistantMessage(Struct, frozen=True, tag="assistant"):
    """The model's answer: words, calls, or both."""

    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    reasoning: Reasoning | None = None
    type: ClassVar[Literal["assistant"]] = "assistant"


class ToolMessage(Struct, frozen=True, tag="tool"):
    """The one result of one call; `images` are data urls, for a model that sees.

    `code` is the stable word of a failure, empty where there was none (or in what an older version
    wrote down). `text` is `content` under the name that words have everywhere else. `sources` are
    the ids of the messages whose words it tells, `authority` the least of those who said them;
    `tainted`: words from outside may be in it. `kept` is what is kept in the place of `content`,
    where that is for this run alone; empty where it is not. No vendor gets these.
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
        """The words the model reads."""
        return self.content


def as_kept(result: ToolMessage) -> ToolMessage:
    """The result as it is written down, and told to later runs."""
    return replace(result, content=result.kept, kept="") if result.kept else result


Message: TypeAlias = SystemMessage | UserMessage | AssistantMessage | ToolMessage


class ToolSpec(Struct, frozen=True):
    """A tool as the model sees it: a flat JSON schema (no `$ref`, `anyOf`, type lists)."""

    name: str
    description: str
    parameters: dict[str, Any]

    def __hash__(self) -> int:
        return hash(self.name)


# A Protocol because the engine, whose `BudgetShare` this is, imports these types.
class Allowance(Protocol):
    """Who says whether a request that failed may be made once more, and hears what one that was
    broken off took.
    """

    @property
    def step(self) -> int:
        """The step of a turn that is asked for; 0 where it is none."""
        ...

    @property
    def is_first(self) -> bool:
        """Whether the request under way is the first attempt of the first request of a question."""
        ...

    @property
    def is_short(self) -> bool:
        """Whether what is asked by now are the last words that are owed."""
        ...

    def again(self) -> bool:
        """Count one more attempt; False where it may not be made."""
        ...

    def record_broken_off(self, model: str, usage: Usage) -> bool:
        """Keep what an attempt took that somebody broke off, as far as it is known. Returns whether
        whoever broke it off writes that down.
        """
        ...


class Counted(Struct, frozen=True):
    """Messages whose tokens were estimated when they were kept; in a transcript they stand behind
    so many others, its `place`.
    """

    place: int
    messages: tuple[Message, ...]
    tokens: float


NOT_COUNTED = Counted(0, (), 0.0)


class TextDelta(Struct, frozen=True, tag="text_delta"):
    """More of the model's text, as it is read: nothing that a filter would cut is in it."""

    text: str
    type: ClassVar[Literal["text_delta"]] = "text_delta"


class ReasoningDelta(Struct, frozen=True, tag="reasoning_delta"):
    """More of the model's thoughts, as the vendor sends them."""

    text: str
    type: ClassVar[Literal["reasoning_delta"]] = "reasoning_delta"


class TextDiscarded(Struct, frozen=True, tag="text_discarded"):
    """The text and the thoughts of this answer so far are void: the model is asked once more."""

    type: ClassVar[Literal["text_discarded"]] = "text_discarded"


Delta: TypeAlias = TextDelta | ReasoningDelta | TextDiscarded
OnDelta: TypeAlias = Callable[[Delta], None]


class ModelRequest(Struct, frozen=True):
    """One request. No tools means that no `tools` key is sent.

    `allowance` is asked before each attempt but the first; without one there may be any number.
    `temperature` is 0 to 2, and not sent where it is None. Without `calls` the
    tools are shown only so that the request begins as others did: none may be called. What is
    `counted` was in the messages when it was made: whoever counts them looks whether it still is.
    Models named in `passed_over` are asked last: they gave no answer to this. `about_pictures`:
    without its pictures there is nothing to ask. `on_delta` is told the answer while it comes by
    models that can; who makes another attempt tells it `TextDiscarded` before. `answer_schema` is
    the JSON schema that the answer should fit, of an object: the messages ask for it, and models
    that can are held to it.
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

    def __eq__(self, other: object) -> bool:  # who counts attempts or tokens asks nothing else
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
        """Whether one more attempt may be made; it is counted."""
        return self.allowance is None or self.allowance.again()


class FinishReason(StrEnum):
    """Why the model stopped, in our words. `UNKNOWN` is fine when there is text or a call."""

    STOP = "stop"
    TOOL_CALLS = "tool_calls"
    LENGTH = "length"
    CONTENT_FILTER = "content_filter"
    UNKNOWN = "unknown"


class Usage(Struct, frozen=True):
    """Tokens. `prompt` includes `cached`, `completion` includes `reasoning`.

    `cost` is in US dollars, the vendor's own figure or by its prices; None where nobody knows,
    never 0 for that. It takes the place of what was `reserved` under that number, if any.
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
    """A finished answer. `refusal` is the model's own refusal in words; `usage` is None when the
    vendor did not say.

    `first_token` is in seconds from the request to the first piece of a streamed answer, None where
    it is not known. `model` is what the vendor calls the model, `endpoint` what we call who
    answered: the `name` of that `ChatModel`. Where it was `asked_twice`, `usage` is of the second
    time alone.
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
    """The words in a sound, and what it took to hear them, where that is known."""

    text: str
    usage: Usage | None = None


class Attempt(Struct, frozen=True):
    """One request to the model of that name, and how it ended after so many seconds.

    `outcome` is `ok`, the kind of a `ModelError`, `cancelled` or `crashed`; there is a completion
    only where it is `ok`. `status` is that of a HTTP answer which was an error, else 0.
    """

    endpoint: str
    outcome: str
    seconds: float
    completion: Completion | None = None
    status: int = 0
