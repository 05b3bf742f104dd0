"""Histories of words and nothing else, as most are: they are written as they stand.

Their JSON is made anew in each request. To remember that of each message is two to three times as
fast where it is found, and two to ten times as slow where it is not: with many groups that is the
rule (measured with 200 of 60 rounds: 29 % of a message's time went there).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from bot.domain.chat import AssistantMessage, Message, SystemMessage, ToolMessage, UserMessage

KINDS: Final = [UserMessage, AssistantMessage]
ROLES: Final = ["user", "assistant"]


def written(messages: Sequence[Message]) -> list[dict[str, str]] | None:
    """Each message, as JSON, of a history in which nothing is to be prepared: what a user and the
    model said in turn, the user first and last. None for any other.
    """
    begin = 1 if messages and isinstance(messages[0], SystemMessage) else 0
    turns = (len(messages) - begin) // 2
    if list(map(type, messages[begin:])) != [*KINDS * turns, UserMessage]:
        return None
    if not are_mere_words(messages):
        return None
    roles = [*["system"][:begin], *ROLES * turns, "user"]
    return [{"role": role, "content": one.text} for role, one in zip(roles, messages, strict=True)]


def are_mere_words(messages: Iterable[Message]) -> bool:
    """Whether there is nothing to them but words, and nothing is to be done about those: as of
    most.
    """
    for message in messages:
        text = message.text
        if isinstance(message, UserMessage):
            is_more = bool(message.images)
        elif isinstance(message, AssistantMessage):
            is_more = bool(message.tool_calls or message.reasoning)
        else:
            is_more = isinstance(message, ToolMessage)
        if is_more or not text or "\0" in text or text.isspace():
            return False
    return True
