"""Repairs vendors' text and JSON: lone surrogates, and JSON that is not quite valid."""

from __future__ import annotations

import json
from typing import Any

import orjson


def repair_text(text: str) -> str:
    """The text with split surrogate pairs joined and lone halves replaced (2.18, 6.18)."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def to_json(value: object) -> str:
    """JSON of a vendor's value; what strict JSON cannot hold is escaped, not lost."""
    try:
        return orjson.dumps(value).decode()
    except TypeError:
        return json.dumps(value)


def read_json(data: bytes) -> Any:
    """Parse JSON as vendors write it. Raises ValueError."""
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        # Escaped half emoji, NaN, raw control characters: invalid JSON, but no reason to lose a
        # turn.
        try:
            return json.loads(data.decode("utf-8", "replace"), strict=False)
        except RecursionError as error:
            raise ValueError("nested too deeply") from error


def short_word(value: object, *, strip: bool = True) -> str:
    """The value if it is text, else an empty one."""
    if not isinstance(value, str):
        return ""
    return value.strip() if strip else value
