"""CQ codes, the one-string form of a message: `[CQ:at,qq=10001] hi` (onebot.md 4.2).

Written into `raw_message`; read from a call whose `message` is a string, as NapCat does unless
`auto_escape` is set.
"""

from __future__ import annotations

import re
from typing import Any

from adapters.simulator.wire import Json

CODE = re.compile(r"\[CQ:([A-Za-z0-9_]+)((?:,[^\[\],=]+=[^\[\],]*)*)\]")


def write(segments: list[Json]) -> str:
    """The segments as one string, its ends trimmed as NapCat trims them."""
    return "".join(map(_write_segment, segments)).strip()


def _write_segment(segment: Json) -> str:
    data = segment["data"]
    if segment["type"] == "text":
        return _escape(str(data.get("text", "")))
    values = (
        f",{name}={_write_value(value)}" for name, value in data.items() if value not in (None, "")
    )
    return f"[CQ:{segment['type']}{''.join(values)}]"


def _write_value(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case dict():
            return _escape("[object Object]")  # what JavaScript makes of it
        case list():
            return "&#44;".join(map(_write_value, value))
        case _:
            return _escape(str(value)).replace(",", "&#44;")


def _escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("[", "&#91;").replace("]", "&#93;")


def read(text: str) -> list[Json]:
    """The segments of a string; whatever is no complete code stays text."""
    segments: list[Json] = []
    end = 0
    for match in CODE.finditer(text):
        segments += _text(text[end : match.start()])
        pairs = (pair.split("=", 1) for pair in match[2].split(",")[1:])
        segments.append(
            {"type": match[1], "data": {name: _unescape(value) for name, value in pairs}}
        )
        end = match.end()
    return segments + _text(text[end:])


def _text(text: str) -> list[Json]:
    return [{"type": "text", "data": {"text": _unescape(text)}}] if text else []


def _unescape(text: str) -> str:
    """`&amp;` goes last: `&amp;#91;` is the text `&#91;`."""
    return (
        text.replace("&#44;", ",").replace("&#91;", "[").replace("&#93;", "]").replace("&amp;", "&")
    )
