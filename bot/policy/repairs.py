"""A request changed so that a model takes it after all; each gives None where there is nothing to
change.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from bot.domain.chat import (
    AssistantMessage,
    Message,
    ModelRequest,
    SystemMessage,
    ToolMessage,
    UserMessage,
)

PICTURE_LEFT_OUT = "[image omitted]"
CALL_AGAIN = (
    "Your last tool call could not be read. Call the tool again by its name, with one valid JSON "
    "object as its arguments, or answer in words."
)


def without_pictures(request: ModelRequest) -> ModelRequest | None:
    """The request with words in the place of pictures."""
    if not has_pictures(request):
        return None
    return replace(request, messages=tuple(map(_without_pictures, request.messages)))


def has_pictures(request: ModelRequest) -> bool:
    """Whether any message shows a picture."""
    return any(
        isinstance(message, UserMessage | ToolMessage) and message.images
        for message in request.messages
    )


def _without_pictures(message: Message) -> Message:
    match message:
        case UserMessage(text=text, images=images) if images:
            return replace(message, text=_with_words(text, len(images)), images=())
        case ToolMessage(content=content, images=images) if images:
            return replace(message, content=_with_words(content, len(images)), images=())
        case _:
            return message


def _with_words(text: str, pictures: int) -> str:
    return "\n".join(filter(None, (text, *[PICTURE_LEFT_OUT] * pictures)))


def plain(request: ModelRequest) -> ModelRequest | None:
    """The request without anything that belongs to one vendor: reasoning, and fields beside the
    calls.
    """
    messages = tuple(map(_plain, request.messages))
    return None if messages == request.messages else replace(request, messages=messages)


def _plain(message: Message) -> Message:
    if not isinstance(message, AssistantMessage):
        return message
    calls = tuple(replace(call, extras="") for call in message.tool_calls)
    return replace(message, reasoning=None, tool_calls=calls)


def asking_again(request: ModelRequest) -> ModelRequest:
    """The request with a word on what was wrong with the call."""
    return replace(request, messages=(*request.messages, UserMessage(CALL_AGAIN)))


def latest_round(request: ModelRequest) -> ModelRequest | None:
    """The system's words and the latest question with what followed: the question is never part of
    what goes.

    A user message that stands last behind a result may be a notice of ours on the question before
    it, so there one more round stays.
    """
    earlier = earlier_rounds(request)
    return dropping(request, earlier) if earlier else None


def earlier_rounds(request: ModelRequest) -> tuple[Message, ...]:
    """The messages between the system's words and the latest question."""
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


def dropping(request: ModelRequest, earlier: tuple[Message, ...]) -> ModelRequest:
    """The request without these messages, which stand first behind the system's words."""
    begin = _beginning(request)
    messages = request.messages
    return replace(request, messages=(*messages[:begin], *messages[begin + len(earlier) :]))


def beginning_with(request: ModelRequest, lengths: Iterable[int]) -> Iterable[tuple[Message, ...]]:
    """The first so many messages behind the system's words, for each length that leaves a question
    behind it.
    """
    begin = _beginning(request)
    for length in lengths:
        end = begin + length
        if end < len(request.messages) and isinstance(request.messages[end], UserMessage):
            yield request.messages[begin:end]


def _beginning(request: ModelRequest) -> int:
    """The index of the first message that is not the system's."""
    messages = request.messages
    return next(
        (index for index, message in enumerate(messages) if not isinstance(message, SystemMessage)),
        len(messages),
    )
