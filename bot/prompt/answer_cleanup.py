"""Removes the prompt's frame and control sequences from a model's messages, both from their text
and from the text given to `send_message`, before they are sent and stored. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from bot.policy.cq_codes import may_contain_codes, strip_meaningless_codes
from bot.prompt.echo_detection import is_echo, repeats_whole
from bot.prompt.frame_removal import FrameRemover
from frostagent.text.visible_text import visible_text, without_controls
from frostagent.types.messages import AssistantMessage, ToolCall
from frostagent.types.speech import SEND

BESIDE = frozenset({"session", "last"})  # other arguments of `send_message`
PARTS = frozenset({"plain", "text", "image", "record", "video", "file", "mention_user", "quote"})
LONGEST_SILENCE = 400  # characters of arguments that may consist of silence alone
ESCAPES = ("\\u", "\\r", "\\b", "\\f")  # JSON escapes, which can hide any character


def clean_message(
    frames: FrameRemover,
    message: AssistantMessage,
    *,
    question: str = "",
    now: str = "",
    is_silence: Callable[[str, str], bool] | None = None,
) -> AssistantMessage:
    """Return the message without frame and control sequences, and without text that only repeats
    the question or the facts of the moment (`now`). Returns the same object if nothing is removed.
    Text for `send_message` that is only silence is removed, however often it is repeated.
    """
    text = frames.cut(without_controls(_said(message.text)))
    if may_contain_codes(text) and not frames.people.speak_of_codes:
        text = strip_meaningless_codes(text)
    said_back = not message.tool_calls and (is_echo(text, question) or repeats_whole(text, now))
    if said_back or not visible_text(text).strip():
        text = ""
    calls = tuple(_tidy_call(frames, call, is_silence) for call in message.tool_calls)
    if text == message.text and calls == message.tool_calls:
        return message
    return replace(message, text=text, tool_calls=calls)


def is_clean_call(frames: FrameRemover, call: ToolCall) -> bool:
    """Whether the text for `send_message` certainly holds no frame and no invisible characters."""
    if call.name != SEND:
        return True
    folded = call.arguments.casefold()
    named = any(name.casefold() in folded for name in frames.names)
    is_plain = not any(escape in call.arguments for escape in ESCAPES)
    is_seen = visible_text(call.arguments) == call.arguments
    return is_plain and is_seen and not named and frames.is_clean(call.arguments)


def _said(text: str) -> str:
    """Return the text of an answer that is only the JSON arguments of `send_message`: the model
    wrote the call instead of making it. Empty if it has no text or names another chat, so that the
    model is asked again. Any other text is returned unchanged.
    """
    if not (text.strip().startswith("{") and '"messages"' in text):
        return text
    try:
        given = json.loads(text)
    except (ValueError, RecursionError):
        return text
    match given:
        case {"messages": [*parts], **beside} if beside.keys() <= BESIDE and parts:
            if all(isinstance(part, dict) and part.get("type") in PARTS for part in parts):
                said = "".join([str(part.get("text") or "") for part in parts])
                return "" if beside.get("session") else said
    return text


def _tidy_call(
    frames: FrameRemover, call: ToolCall, is_silence: Callable[[str, str], bool] | None
) -> ToolCall:
    may_be_silence = is_silence is not None and len(call.arguments) <= LONGEST_SILENCE
    if is_clean_call(frames, call) and not (may_be_silence and call.name == SEND):
        return call
    try:
        arguments = json.loads(call.arguments)
    except (ValueError, RecursionError):
        return call
    if not isinstance(arguments, dict) or "messages" not in arguments:
        return call

    def tidied_text(text: str) -> str:
        own = frames.cut(without_controls(text))
        return "" if is_silence is not None and is_silence(own, own) else own

    tidied = arguments | {"messages": tidy_parts(arguments["messages"], tidied_text)}
    if tidied == arguments:
        return call
    return replace(call, arguments=json.dumps(tidied, ensure_ascii=False))


def tidy_parts(parts: Any, tidied: Callable[[str], str]) -> Any:
    """The parts with their texts tidied; they may be a list, one, or JSON of either
    (`tools/send_message.py`).
    """
    match parts:
        case str():
            try:
                inner = json.loads(parts)
            except (ValueError, RecursionError):
                return parts
            told = tidy_parts(inner, tidied)
            return parts if told == inner else json.dumps(told, ensure_ascii=False)
        case list():
            return [tidy_parts(part, tidied) if isinstance(part, dict) else part for part in parts]
        case {"text": str(text), **rest}:
            return {"text": tidied(text), **rest}
        case _:
            return parts
