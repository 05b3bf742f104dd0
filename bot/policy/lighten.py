"""A message without its ballast: what nobody will read is not kept in memory, in the store or in a prompt.

Anybody in a group can send a forward or a card of a megabyte; thousands of such messages must not be a problem.
"""

from __future__ import annotations

import operator
from dataclasses import replace

from bot.domain.events import MessageReceived
from bot.domain.segments import Card, Forward, Image, Markdown, Record, Segment, Text, Unsupported, Video

MAX_TEXT = 8000  # characters of one segment
MAX_DATA = 500  # characters of a card, of a name of a file, of what we do not know
MAX_SEGMENTS = 200


def lighten(message: MessageReceived) -> MessageReceived:
    """The same message with long data cut; the very same object where there is nothing to cut."""
    segments = tuple(_lighten(segment) for segment in message.segments[:MAX_SEGMENTS])
    if len(segments) == len(message.segments) and all(map(operator.is_, segments, message.segments)):
        return message
    return replace(message, segments=segments)


def _lighten(segment: Segment) -> Segment:
    match segment:
        case Text(text=text) if len(text) > MAX_TEXT:
            return Text(text[: MAX_TEXT - 1] + "…")
        case Markdown(content=content) if len(content) > MAX_TEXT:
            return Markdown(content[: MAX_TEXT - 1] + "…")
        case Forward(content=content) if content:
            return replace(segment, content="")
        case Card(data=data, prompt=prompt) if len(data) > MAX_DATA or len(prompt) > MAX_DATA:
            return replace(segment, data=data[:MAX_DATA], prompt=prompt[:MAX_DATA])
        case Unsupported(data=data) if len(data) > MAX_DATA:
            return replace(segment, data=data[:MAX_DATA])
        case Image(file=file) | Record(file=file) | Video(file=file) if len(file) > MAX_DATA:
            return replace(segment, file="")
        case _:
            return segment
