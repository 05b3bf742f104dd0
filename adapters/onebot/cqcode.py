"""Messages in the old string form, `hello [CQ:at,qq=123]`, taken apart into wire segments
(onebot.md 4.2).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from adapters.onebot.fields import Fields

# A bracket inside a code is always escaped, so one that comes before the end says that this is
# none: what looks like the beginning of a code is text then, and the next one is read. It also
# keeps the work linear: no character is looked at for more than one beginning, also in a megabyte
# of them.
_CODE = re.compile(r"\[CQ:([\w.-]+)(?:,([^\[\]]*))?\]")


def split_cq(message: str) -> Iterator[Fields]:
    """The wire segments `{"type": ..., "data": {...}}` of a CQ string, in order, in time linear in
    its length.

    What is no code stays text, an unterminated one and what stands around it included.
    """
    end = 0
    for code in _CODE.finditer(message):
        if code.start() > end:
            yield _text(message[end : code.start()])
        yield {"type": code[1], "data": _parameters(code[2] or "")}
        end = code.end()
    if end < len(message):
        yield _text(message[end:])


def unescape(text: str) -> str:
    """Undo the escapes; `&amp;` last, else `&amp;#91;` (a person's own `&#91;`) would become a
    bracket.
    """
    if "&" not in text:
        return text
    return (
        text.replace("&#44;", ",").replace("&#91;", "[").replace("&#93;", "]").replace("&amp;", "&")
    )


def _text(escaped: str) -> Fields:
    return {"type": "text", "data": {"text": unescape(escaped)}}


def _parameters(text: str) -> Fields:
    pairs = (part.partition("=") for part in text.split(",") if part)
    return {key: unescape(value) for key, _, value in pairs}
