"""Messages of a model, as they may be sent and kept: without the frame in their words and in those
given to `send_message`. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from bot.domain.chat import AssistantMessage, ToolCall
from bot.policy.echo import is_all_of, is_echo
from bot.prompt.frames import Frames
from bot.prompt.said_back import NOTHING_SHOWN, Shown

SEND = "send_message"  # the tool whose words are ours


def tidy(
    frames: Frames, message: AssistantMessage, *, shown: Shown = NOTHING_SHOWN, now: str = ""
) -> AssistantMessage:
    """The message without the frame, and without words that only repeat the question, what was
    told of the moment (`now`), or what else the prompt of its run has `shown`; the very same
    message where there is nothing to cut.
    """

    def own(text: str) -> str:
        if shown.is_speaker(text):
            return ""
        cut = frames.cut(text)
        left = shown.without(cut)
        return cut if left is cut else frames.cut(left)

    text = own(message.text)
    if not message.tool_calls and (is_echo(text, shown.question) or is_all_of(text, now)):
        text = ""
    calls = tuple(
        call if shown is NOTHING_SHOWN and is_tidy(frames, call) else _tidy_call(own, call)
        for call in message.tool_calls
    )
    if text == message.text and calls == message.tool_calls:
        return message
    return replace(message, text=text, tool_calls=calls)


def is_tidy(frames: Frames, call: ToolCall) -> bool:
    """Whether no frame can be in what the call gives to `send_message`."""
    if call.name != SEND:
        return True
    folded = call.arguments.casefold()
    named = any(name.casefold() in folded for name in frames.names)
    return not named and "\\u" not in call.arguments and frames.is_clean(call.arguments)


def _tidy_call(own: Callable[[str], str], call: ToolCall) -> ToolCall:
    if call.name != SEND:
        return call
    try:
        arguments = json.loads(call.arguments)
    except (ValueError, RecursionError):
        return call
    if not isinstance(arguments, dict) or "messages" not in arguments:
        return call
    tidied = arguments | {"messages": _tidy_parts(own, arguments["messages"])}
    if tidied == arguments:
        return call
    return replace(call, arguments=json.dumps(tidied, ensure_ascii=False))


def _tidy_parts(own: Callable[[str], str], parts: Any) -> Any:
    """The parts with their texts cut; they may be a list, one, or JSON of either
    (`tools/send_message.py`).
    """
    match parts:
        case str():
            try:
                inner = json.loads(parts)
            except (ValueError, RecursionError):
                return parts
            tidied = _tidy_parts(own, inner)
            return parts if tidied == inner else json.dumps(tidied, ensure_ascii=False)
        case list():
            return [_tidy_parts(own, part) if isinstance(part, dict) else part for part in parts]
        case {"text": str(text), **rest}:
            return {"text": own(text), **rest}
        case _:
            return parts
