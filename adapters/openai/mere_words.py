"""Histories of words and nothing else, as most are: they are written as they stand.

Their JSON is made anew in each request. To remember that of each message is two to three times as
fast where it is found, and two to ten times as slow where it is not: with many groups that is the
rule (measured with 200 of 60 rounds: 29 % of a message's time went there).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from bot.domain.chat import AssistantMessage, Message, SystemMessage, ToolMessage, UserMessage

ROLES: Final[Mapping[type[Message], str]] = {
    SystemMessage: "system",
    UserMessage: "user",
    AssistantMessage: "assistant",
}


def written(messages: Sequence[Message]) -> list[dict[str, str]] | None:
    """Each message, as JSON, of a history in which nothing is to be prepared: what a user and the
    model said in turn, the user first and last. None for any other.
    """
    begin = 1 if messages and isinstance(messages[0], SystemMessage) else 0
    turns = [UserMessage, AssistantMessage] * ((len(messages) - begin) // 2)
    if list(map(type, messages[begin:])) != [*turns, UserMessage]:
        return None
    if not all(map(is_mere_words, messages)):
        return None
    said = [message for message in messages if not isinstance(message, ToolMessage)]
    return [{"role": ROLES[type(message)], "content": message.text} for message in said]


def is_mere_words(message: Message) -> bool:
    """Whether there is nothing to it but words, and nothing is to be done about those: as of
    most.
    """
    is_more = False
    if isinstance(message, UserMessage):
        is_more = bool(message.images)
    elif isinstance(message, AssistantMessage):
        is_more = bool(message.tool_calls or message.reasoning)
    elif isinstance(message, ToolMessage):
        return False
    text = message.text
    return not is_more and bool(text) and "\0" not in text and not text.isspace()
