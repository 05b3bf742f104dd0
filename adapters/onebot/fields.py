"""Reading untrusted JSON: any input is either read or a ValueError.

Numbers come as text, text as numbers, lists as null (onebot.md 4.1); text comes with lone
surrogates and NUL, which logs, databases and HTTP bodies reject (onebot.md 6.13).
"""

from __future__ import annotations

import re
from typing import Any, TypeAlias

import orjson

from bot.core.conversation import MAX_ID

Fields: TypeAlias = dict[str, Any]

# Matches every escape in order, so that the second half of an escaped backslash never begins
# another. A surrogate pair is one match and stays; group 1 is half a pair, or NUL.
_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u([dD][89a-fA-F][0-9a-fA-F]{2}|0000)|.)",
    re.DOTALL,
)
_DIGITS = re.compile(r"[+-]?[0-9]{1,19}")
_DECIMAL = re.compile(r"[+-]?[0-9]{1,19}(\.[0-9]{1,19})?")


def load(data: str | bytes) -> Any:
    """Parse JSON without NUL, and with U+FFFD for invalid Unicode. Raises ValueError."""
    raw = data if isinstance(data, bytes) else data.encode("utf-8", "surrogatepass")
    if rb"\u0000" in raw:
        raw = _mend(raw)
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError:
        return orjson.loads(_mend(raw))


def _mend(raw: bytes) -> bytes:
    return _ESCAPE.sub(_mend_escape, raw.decode("utf-8", "replace").encode())


def _mend_escape(match: re.Match[bytes]) -> bytes:
    half: bytes | None = match[1]
    if half is None:
        return match[0]
    return b"" if half == b"0000" else rb"\ufffd"


def dump(value: object) -> str:
    """A part of a frame as JSON; `{}` if it is nested too deeply to be written."""
    try:
        return orjson.dumps(value).decode()
    except TypeError:
        return "{}"


def clean(text: str) -> str:
    """Our text for the wire: without NUL, lone surrogates replaced."""
    try:
        text.encode()
    except UnicodeEncodeError:
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text.replace("\0", "")


def text(value: object) -> str:
    """A field of any type as text: null and booleans are empty; lists and objects are JSON."""
    if type(value) is str:  # the usual case: a pattern takes twice as long
        return value
    match value:
        case None | bool():
            return ""
        case int() | float():
            return str(value)
        case _:
            return dump(value)


def number(value: object) -> int:
    """A field as an integer; 0 if it is none or exceeds 64 bits."""
    match value:
        case int() if not isinstance(value, bool):
            found = value
        case str() if _DIGITS.fullmatch(stripped := value.strip()):
            found = int(stripped)
        case float() if abs(value) <= MAX_ID:
            found = int(value)
        case _:
            found = 0
    return found if abs(found) <= MAX_ID else 0


def decimal(value: object) -> float:
    """A field as a float; 0 if it is none, or too large for a time."""
    match value:
        case int() | float() if not isinstance(value, bool) and abs(value) <= MAX_ID:
            return float(value)
        case str() if _DECIMAL.fullmatch(stripped := value.strip()):
            return float(stripped)
        case _:
            return 0.0


def mapping(value: object) -> Fields:
    """A field as an object; empty if it is none."""
    return value if isinstance(value, dict) else {}


def sequence(value: object) -> list[Any]:
    """A field as a list; empty if it is none."""
    return value if isinstance(value, list) else []
