"""Changes a request that a model refused. Each function returns None if nothing changes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from msgspec.structs import replace

from frostagent.types.messages import (
    AssistantMessage,
    Message,
    ModelRequest,
    SystemMessage,
    ToolCall,
    ToolMessage,
    UserMessage,
)

PICTURE_LEFT_OUT = "[image omitted: it could not be shown to you]"
CALL_AGAIN = (
    "Your last tool call could not be read. Call the tool again by its name, with one valid JSON "
    "object as its arguments, or answer in words."
)


CALL_MADE = "You called the tool {name} with {arguments}"
RESULT_READ = "{call}, and its result was:"
TOLD_CALL = re.compile(r"You called the tool \S+ with \{")
RESULT_QUOTE = "| "
"""Begins each line of a result written as text, so that none can pass for a user's."""


def with_notice(messages: tuple[Message, ...], notice: str) -> tuple[Message, ...]:
    """The messages with a notice at the end, for one request only.

    It is merged with a final user message: strict servers refuse two in a row
    (`docs/protocol/vendors.md` 6.4).
    """
    match messages[-1] if messages else None:
        case _ if not notice:
            return messages
        case UserMessage(text=text) as last:
            text = "\n\n".join(filter(None, (text, notice)))
            return (*messages[:-1], replace(last, text=text))
        case _:
            return (*messages, UserMessage(notice))


def without_pictures(
    request: ModelRequest, is_refused: Callable[[str], bool] = lambda _: True
) -> ModelRequest | None:
    """The request with text in place of those pictures; None for one about its pictures."""
    if request.about_pictures or not any(map(is_refused, pictures_of(request))):
        return None
    messages = tuple(_without_pictures(message, is_refused) for message in request.messages)
    return replace(request, messages=messages)


def has_pictures(request: ModelRequest) -> bool:
    return any(True for _ in pictures_of(request))


def pictures_of(request: ModelRequest) -> Iterator[str]:
    """All pictures in the messages, as data URLs."""
    for message in request.messages:
        if isinstance(message, UserMessage | ToolMessage):
            yield from message.images


def _without_pictures(message: Message, is_refused: Callable[[str], bool]) -> Message:
    if not isinstance(message, UserMessage | ToolMessage) or not message.images:
        return message
    shown = tuple(image for image in message.images if not is_refused(image))
    left_out = [PICTURE_LEFT_OUT] * (len(message.images) - len(shown))
    text = "\n".join(filter(None, (message.text, *left_out)))
    if isinstance(message, UserMessage):
        return replace(message, text=text, images=shown)
    return replace(message, content=text, images=shown)


def without_vendor_fields(request: ModelRequest) -> ModelRequest | None:
    """The request without vendor-specific fields: reasoning, and extras of calls."""
    messages = tuple(map(_plain, request.messages))
    return None if messages == request.messages else replace(request, messages=messages)


def _plain(message: Message) -> Message:
    if not isinstance(message, AssistantMessage):
        return message
    calls = tuple(replace(call, extras="") for call in message.tool_calls)
    return replace(message, reasoning=None, tool_calls=calls)


def calls_as_words(request: ModelRequest) -> ModelRequest | None:
    """The request in the plainest form: user and assistant alternate, calls and results are text.

    Calls are described in user messages, because a model would imitate its own messages.
    """
    plainest: list[Message] = []
    calls: list[ToolCall] = []
    for message in request.messages:
        if calls and not isinstance(message, ToolMessage):
            _tell(plainest, _unanswered(calls))
            calls = []
        match message:
            case ToolMessage():
                made = next((call for call in calls if call.id == message.call_id), None)
                if made is not None:
                    calls.remove(made)
                _tell(plainest, _in_words(message, made))
            case AssistantMessage(tool_calls=made_now) if made_now:
                calls = list(made_now)
                if message.text.strip():
                    _tell(plainest, AssistantMessage(message.text))
            case _:
                _tell(plainest, message)
    if calls:
        _tell(plainest, _unanswered(calls))
    messages = tuple(plainest)
    return None if messages == request.messages else replace(request, messages=messages)


def _tell(told: list[Message], message: Message) -> None:
    """Add the message, merged with the last one if the role is the same."""
    match told[-1] if told else None, message:
        case UserMessage() as last, UserMessage():
            told[-1] = UserMessage(
                "\n\n".join(filter(None, (last.text, message.text))),
                (*last.images, *message.images),
                (*last.sources, *message.sources),
                (*last.quotes, *message.quotes),
            )
        case AssistantMessage() as last, AssistantMessage():
            told[-1] = replace(message, text="\n\n".join(filter(None, (last.text, message.text))))
        case _:
            told.append(message)


def _in_words(result: ToolMessage, call: ToolCall | None) -> UserMessage:
    made = _made(call or ToolCall("", result.name, "{}"))
    lines = [RESULT_QUOTE + line for line in result.content.splitlines()]
    return UserMessage("\n".join((RESULT_READ.format(call=made), *lines)), result.images)


def _unanswered(calls: Iterable[ToolCall]) -> UserMessage:
    return UserMessage("\n".join(f"{_made(call)}; its result was lost." for call in calls))


def _made(call: ToolCall) -> str:
    return CALL_MADE.format(name=call.name, arguments=" ".join(call.arguments.split()) or "{}")


def is_told_call(text: str) -> bool:
    """Whether the text imitates how `calls_as_words` describes a call."""
    return TOLD_CALL.match(text.lstrip()) is not None


def question_in_words(request: ModelRequest) -> ModelRequest | None:
    """Only the latest question, in the plainest form, without pictures."""
    changed = latest_round(request) or request
    changed = without_pictures(changed) or changed
    changed = calls_as_words(changed) or changed
    return None if changed == request else changed


def with_call_error(request: ModelRequest) -> ModelRequest:
    """The request with a notice that the call was unreadable."""
    return replace(request, messages=with_notice(request.messages, CALL_AGAIN))


def latest_round(request: ModelRequest) -> ModelRequest | None:
    """System messages and the latest question with what follows.

    A final user message after a result may be a notice on the previous question, so one more round
    is kept then.
    """
    earlier = earlier_rounds(request)
    return without_messages(request, earlier) if earlier else None


def earlier_rounds(request: ModelRequest) -> tuple[Message, ...]:
    """The messages between the system messages and the latest question."""
    messages, begin = request.messages, _beginning(request)
    questions = [
        index for index, message in enumerate(messages) if isinstance(message, UserMessage)
    ]
    if not questions:
        return ()
    cut = questions[-1]
    behind_result = (
        cut == len(messages) - 1 and cut > begin and isinstance(messages[cut - 1], ToolMessage)
    )
    if behind_result and len(questions) > 1:
        cut = questions[-2]
    return messages[begin:cut]


def without_messages(request: ModelRequest, earlier: tuple[Message, ...]) -> ModelRequest:
    """The request without these messages, which directly follow the system messages."""
    begin = _beginning(request)
    messages = request.messages
    return replace(request, messages=(*messages[:begin], *messages[begin + len(earlier) :]))


def request_beginnings(
    request: ModelRequest, lengths: Iterable[int]
) -> Iterable[tuple[Message, ...]]:
    """Prefixes of these lengths, after the system messages, if a question follows."""
    begin = _beginning(request)
    for length in lengths:
        end = begin + length
        if end < len(request.messages) and isinstance(request.messages[end], UserMessage):
            yield request.messages[begin:end]


def _beginning(request: ModelRequest) -> int:
    """The index of the first message that is not a system message."""
    messages = request.messages
    return next(
        (index for index, message in enumerate(messages) if not isinstance(message, SystemMessage)),
        len(messages),
    )
