"""Text and JSON as vendors send them: halves of characters, and JSON that is none to the letter."""

from __future__ import annotations

import json
import re
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


MAX_SPAN = 2000  # characters of code in a line of text

# A fence at the beginning of a line, or a run of backticks; to be used with re.MULTILINE.
BEGINNING = r"(?P<fence>^[ \t>]*(?P<run>`{3,}|~{3,}))|(?P<tick>`+)"
CODE = re.compile(BEGINNING, re.MULTILINE)


def without_code(text: str) -> str:
    """The text with its code blanked out, as long as it was."""
    kept: list[str] = []
    at = 0
    while found := CODE.search(text, at):
        end = end_of_code(text, found)
        kept += text[at : found.start()], " " * (end - found.start())
        at = end
    return "".join([*kept, text[at:]])


def end_of_code(text: str, found: re.Match[str]) -> int:
    """Where code ends that so begins: that of its first backticks where none close it."""
    return _end_of_fence(text, found) if found["fence"] else _end_of_span(text, found)


def _end_of_fence(text: str, found: re.Match[str]) -> int:
    run = found["run"]
    line_end = text.find("\n", found.end())
    close = re.compile(rf"^[ \t>]*{run[0]}{{{len(run)},}}[ \t]*$", re.MULTILINE)
    end = close.search(text, line_end) if line_end >= 0 else None
    return end.end() if end else len(text)


def _end_of_span(text: str, found: re.Match[str]) -> int:
    run = found["tick"]
    close = re.compile(rf"(?<!`){run}(?!`)").search(text, found.end(), found.end() + MAX_SPAN)
    return close.end() if close and "\n\n" not in text[found.end() : close.start()] else found.end()
