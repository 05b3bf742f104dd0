"""Histories of words and nothing else, as most are: they are written as they stand.

Their JSON is made anew in each request. To remember that of each message is two to three times as
fast where it is found, and two to ten times as slow where it is not: with many groups that is the
rule (measured with 200 of 60 rounds: 29 % of a message's time went there).
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Final

from bot.domain.chat import AssistantMessage, Message, SystemMessage, ToolMessage, UserMessage

KINDS: Final = [UserMessage, AssistantMessage]
ROLES: Final = ["user", "assistant"]
_images: Final = attrgetter("images")
_calls: Final = attrgetter("tool_calls")
_reasoning: Final = attrgetter("reasoning")
_text: Final = attrgetter("text")


def written(messages: Sequence[Message]) -> list[dict[str, str]] | None:
    """Each message, as JSON, of a history in which nothing is to be prepared: what a user and the
    model said in turn, the user first and last. None for any other.
    """
    begin = 1 if messages and isinstance(messages[0], SystemMessage) else 0
    turns = (len(messages) - begin) // 2
    if list(map(type, messages[begin:])) != [*KINDS * turns, UserMessage]:
        return None
    users, answers = messages[begin::2], messages[begin + 1 :: 2]
    if any(map(_images, users)) or any(map(_calls, answers)) or any(map(_reasoning, answers)):
        return None
    texts: list[str] = list(map(_text, messages))
    if not are_words(texts):
        return None
    roles = [*["system"][:begin], *ROLES * turns, "user"]
    return [{"role": role, "content": text} for role, text in zip(roles, texts, strict=True)]


def are_words(texts: Sequence[str]) -> bool:
    """Whether nothing is to be done about any of them: of most that is true."""
    return all(texts) and not any(map(str.isspace, texts)) and "\0" not in "".join(texts)


def is_mere_words(message: UserMessage | AssistantMessage | ToolMessage) -> bool:
    """Whether there is nothing to it but words, and nothing is to be done about those."""
    match message:
        case UserMessage():
            return not message.images and are_words((message.text,))
        case AssistantMessage():
            is_more = message.tool_calls or message.reasoning
            return not is_more and are_words((message.text,))
        case ToolMessage():
            return False
