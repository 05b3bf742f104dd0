"""Trims messages to what may be read later, before they are kept in memory, the store or a prompt.

Anyone in a group can send a forward or a card of a megabyte; thousands of them must do no harm. A
long text keeps its end too, which often holds a mention and the question.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from bot.core.events import MessageReceived
from bot.core.segments import Forward, Keyboard, Markdown, Mention, Segment
from frostagent.types.speech import Text

MAX_TEXT = 20_000  # characters of all texts of a message, with the mark at the cut
TAIL = 5_000  # of these, at the end
HEAD = MAX_TEXT - TAIL - 20  # and at the beginning; the mark fits into the 20
MAX_URL = 2_000
MAX_DATA = 500  # characters of a card, a file name or unknown data
MAX_NAME = 100  # of a person or a group
MAX_LABELS = 20  # buttons
MAX_SEGMENTS = 200
ORDINARY = 1_000  # characters of an average message
HEAVIEST = 20_000

CUT = "…(共 {total} 字)…"

LIMITS = {"url": MAX_URL}
ALL_OR_NOTHING = frozenset({"url", "file", "path", "id", "key", "hash", "package_id", "message_id"})
"""Fields that are useless if cut."""


def trim_message(message: MessageReceived) -> MessageReceived:
    """Return the message with long data cut, or the same object if nothing is."""
    segments = tuple([_lighten(segment) for segment in message.segments[:MAX_SEGMENTS]])
    if (total := _length(segments)) > MAX_TEXT:
        segments = tuple(_cut_texts(segments, total))
    sender, group_name = message.sender, message.group_name
    if max(len(sender.nickname), len(sender.card), len(group_name)) > MAX_NAME:
        sender = replace(sender, nickname=sender.nickname[:MAX_NAME], card=sender.card[:MAX_NAME])
        group_name = group_name[:MAX_NAME]
    elif len(segments) == len(message.segments) and all(
        map(operator.is_, segments, message.segments)
    ):
        return message
    return replace(message, segments=segments, sender=sender, group_name=group_name)


def message_weight(message: MessageReceived) -> int:
    """Weight in a cache, in average messages."""
    return min(HEAVIEST, 1 + _length(message.segments) // ORDINARY)


def _length(segments: tuple[Segment, ...]) -> int:
    length = 0
    for segment in segments:
        if isinstance(segment, Text):
            length += len(segment.text)
        elif isinstance(segment, Markdown):
            length += len(segment.content)
    return length


def _cut_texts(segments: tuple[Segment, ...], total: int) -> Iterator[Segment]:
    """Cut the middle of the texts, which have `total` characters."""
    tail = total - TAIL
    at = 0
    for segment in segments:
        text = _text_of(segment)
        start, end = at, at + len(text)
        at = end
        if not text:
            yield segment
            continue
        mark = CUT.format(total=total) if start <= HEAD < end else ""
        kept = f"{text[: max(0, HEAD - start)]}{mark}{text[max(0, tail - start) :]}"
        if kept:
            yield Markdown(kept) if isinstance(segment, Markdown) else Text(kept)


def _text_of(segment: Segment) -> str:
    match segment:
        case Text(text=text) | Markdown(content=text):
            return text
        case _:
            return ""


def _lighten(segment: Segment) -> Segment:
    match segment:
        case Text() | Markdown() | Mention(name=""):
            return segment
        case Forward(id=id_, content=content) if content or len(id_) > MAX_DATA:
            return Forward(id_[:MAX_DATA])
        case Keyboard(labels=labels):
            short = tuple(label[:MAX_NAME] for label in labels[:MAX_LABELS])
            return segment if short == labels else Keyboard(short)
        case _:
            cut = dict(_too_long(segment))
            return replace(segment, **cut) if cut else segment


def _too_long(segment: Segment) -> Iterator[tuple[str, Any]]:
    for name in segment.__struct_fields__:
        value = getattr(segment, name)
        limit = LIMITS.get(name, MAX_DATA)
        if isinstance(value, str) and len(value) > limit:
            yield name, "" if name in ALL_OR_NOTHING else value[:limit]
