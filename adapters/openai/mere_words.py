"""Histories of words and nothing else, as most are: each message is made JSON once, since it stands
in the next request as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import orjson

from bot.domain.chat import AssistantMessage, Message, SystemMessage, ToolMessage, UserMessage

KEPT = 1024  # messages


def written(messages: Sequence[Message]) -> list[orjson.Fragment] | None:
    """The JSON of each message of a history in which nothing is to be prepared: what a user and the
    model said in turn, the user first and last. None for any other.
    """
    begin = 1 if messages and isinstance(messages[0], SystemMessage) else 0
    turns = [UserMessage, AssistantMessage] * ((len(messages) - begin) // 2)
    if list(map(type, messages[begin:])) != [*turns, UserMessage]:
        return None
    fragments = [one for one in map(_kept, messages[:-1]) if one is not None]
    if len(fragments) < len(messages) - 1 or (last := _write(messages[-1])) is None:
        return None
    return [*fragments, last]  # the question is another one in each request


def is_mere_words(message: Message) -> bool:
    """Whether somebody said it, there is nothing to it but words, and nothing is to be done about
    those: as of most.
    """
    if isinstance(message, UserMessage):
        if message.images:
            return False
    elif not isinstance(message, AssistantMessage) or message.tool_calls or message.reasoning:
        return False
    return _is_clean(message.text)


def _is_clean(text: str) -> bool:
    return bool(text) and "\0" not in text and not text.isspace()


def _write(message: Message) -> orjson.Fragment | None:
    if isinstance(message, SystemMessage):
        role, is_mere = "system", _is_clean(message.text)
    else:
        role = "user" if isinstance(message, UserMessage) else "assistant"
        is_mere = is_mere_words(message)
    if not is_mere or isinstance(message, ToolMessage):
        return None
    try:
        return orjson.Fragment(orjson.dumps({"role": role, "content": message.text}))
    except TypeError:  # halves of characters are left to the writer of all others
        return None


_kept = lru_cache(KEPT)(_write)
