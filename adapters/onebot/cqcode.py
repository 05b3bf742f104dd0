"""Messages in the old string form, `hello [CQ:at,qq=123]`, taken apart into wire segments (facts.md 4.2)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from adapters.onebot.fields import Fields

# The beginning of a code, up to its parameters. Its end is looked for with `find`: a pattern of the whole code reads
# to the end of the message for every code that has none, which is hours of work for a megabyte of them.
_HEAD = re.compile(r"\[CQ:([\w.-]+)(?:,|(?=\]))")


def split_cq(message: str) -> Iterator[Fields]:
    """The wire segments `{"type": ..., "data": {...}}` of a CQ string, in order, in time linear in its length.

    An unterminated code stays text. A `]` inside a value is always escaped.
    """
    end = 0
    # A code without an end has no `]` after it, so there is none for later ones either.
    while (head := _HEAD.search(message, end)) and (close := message.find("]", head.end())) >= 0:
        if head.start() > end:
            yield _text(message[end : head.start()])
        yield {"type": head[1], "data": _parameters(message[head.end() : close])}
        end = close + 1
    if end < len(message):
        yield _text(message[end:])


def unescape(text: str) -> str:
    """Undo the escapes; `&amp;` last, else `&amp;#91;` (a person's own `&#91;`) would become a bracket."""
    if "&" not in text:
        return text
    return text.replace("&#44;", ",").replace("&#91;", "[").replace("&#93;", "]").replace("&amp;", "&")


def _text(escaped: str) -> Fields:
    return {"type": "text", "data": {"text": unescape(escaped)}}


def _parameters(text: str) -> Fields:
    pairs = (part.partition("=") for part in text.split(",") if part)
    return {key: unescape(value) for key, _, value in pairs}
