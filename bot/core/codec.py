"""One JSON codec for everything the domain stores or sends: union members are told apart by their
`type`.

Reading is lenient with what is missing (defaults) and strict with what is wrong; writing is
compact, keeps non-ASCII letters, and is the same bytes for the same value.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec

from frostagent.types.errors import BotError


class Unreadable(BotError):
    """Stored text that is not what it should be."""


def _plain(value: object) -> str:
    if isinstance(value, str):  # of a kind of its own, as some libraries have them
        return str(value)
    raise TypeError(f"{type(value).__name__} has no form in JSON")


_WRITER = msgspec.json.Encoder(enc_hook=_plain)


@cache
def _reader(kind: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(kind)


def encode(value: object) -> bytes:
    """The value as JSON in UTF-8. Raises TypeError, ValueError for what JSON cannot say."""
    return _WRITER.encode(value)


def write(value: object) -> str:
    """The same as a text."""
    return encode(value).decode()


def read(kind: Any, text: str | bytes) -> Any:
    """The value a JSON text stands for; `kind` is its type or union, as `Message` or
    `tuple[Segment, ...]`. Raises Unreadable.
    """
    try:
        return _reader(kind).decode(text)
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"stored text is not what it should be: {error}") from None
