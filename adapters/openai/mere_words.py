"""Histories of words and nothing else, as most are: they are written as they stand.

Their JSON is made anew in each request. To remember that of each message is two to three times as
fast where it is found, and two to ten times as slow where it is not: with many groups that is the
rule (measured with 200 of 60 rounds: 29 % of a message's time went there).
"""

from __future__ import annotations

from collections.abc import Sequence

from bot.domain.chat import AssistantMessage, Message, SystemMessage, ToolMessage, UserMessage


def written(messages: Sequence[Message]) -> list[dict[str, str]] | None:
    """Each message, as JSON, of a history in which nothing is to be prepared: what a user and the
    model said in turn, the user first and last. None for any other.
    """
    bodies: list[dict[str, str]] = []
    texts: list[str] = []
    role = ""
    for one in messages:  # a plain loop: maps over each field take a third longer
        if type(one) is UserMessage and role != "user" and not one.images:
            role = "user"
        elif type(one) is AssistantMessage and role == "user" and not one.tool_calls:
            if one.reasoning:
                return None
            role = "assistant"
        elif type(one) is SystemMessage and not role:
            role = "system"
        else:
            return None
        texts.append(one.text)
        bodies.append({"role": role, "content": one.text})
    return bodies if role == "user" and are_words(texts) else None


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
