"""Text and JSON as vendors send them: halves of characters, and JSON that is none to the letter."""

from __future__ import annotations

import json
from typing import Any

import orjson


def repair_text(text: str) -> str:
    """The text with halves of a character that came in two deltas joined, and lone halves replaced
    (2.18, 6.18).
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def to_json(value: object) -> str:
    """JSON of what a vendor sent; what does not fit the letter of JSON is escaped, not lost."""
    try:
        return orjson.dumps(value).decode()
    except TypeError:
        return json.dumps(value)


def read_json(data: bytes) -> Any:
    """JSON as vendors write it. Raises ValueError."""
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        # Half an emoji as an escape, NaN, raw control characters: not JSON to the letter, but no
        # reason to lose a turn.
        try:
            return json.loads(data.decode("utf-8", "replace"), strict=False)
        except RecursionError as error:
            raise ValueError("nested too deeply") from error


def short_word(value: object, *, strip: bool = True) -> str:
    """The value where it is text, else nothing."""
    if not isinstance(value, str):
        return ""
    return value.strip() if strip else value
