"""The JSON codec for everything the domain stores or sends; union members are tagged by `type`.

Reading fills missing fields with defaults, and rejects wrong ones. Writing is compact, keeps
non-ASCII letters, and gives equal bytes for equal values.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec

from frostagent.types.errors import BotError


class Unreadable(BotError):
    """Stored text that cannot be decoded."""


def _plain(value: object) -> str:
    if isinstance(value, str):  # a subclass, as some libraries have
        return str(value)
    raise TypeError(f"{type(value).__name__} has no form in JSON")


_WRITER = msgspec.json.Encoder(enc_hook=_plain)


@cache
def _reader(kind: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(kind)


def encode(value: object) -> bytes:
    """The value as JSON in UTF-8. Raises TypeError or ValueError if JSON cannot express it."""
    return _WRITER.encode(value)


def write(value: object) -> str:
    return encode(value).decode()


def read(kind: Any, text: str | bytes) -> Any:
    """Decode a value; `kind` is its type or union, such as `Message` or `tuple[Segment, ...]`.
    Raises Unreadable.
    """
    try:
        return _reader(kind).decode(text)
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"stored text is not what it should be: {error}") from None
