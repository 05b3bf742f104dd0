"""One JSON codec for everything the domain stores or sends: union members are told apart by their
`type`.

Reading is lenient with what is missing (defaults) and strict with what is wrong; writing is
compact, keeps non-ASCII letters, and is the same bytes for the same value.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from pydantic import TypeAdapter, ValidationError

from bot.domain.errors import BotError


class Unreadable(BotError):
    """Stored text that is not what it should be."""


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


@cache
def _writer(kind: Any) -> Callable[[object], bytes]:
    """What `dump_json` calls, without the fourteen options it passes on: those cost more than most
    values.
    """
    return _adapter(kind).serializer.to_json


def write(kind: Any, value: object) -> str:
    """The value as JSON text; `kind` is its type or union, as `Message` or `tuple[Segment,
    ...]`.
    """
    return _writer(kind)(value).decode()


def read(kind: Any, text: str | bytes) -> Any:
    """The value a JSON text stands for. Raises Unreadable."""
    try:
        return _adapter(kind).validate_json(text)
    except ValidationError as error:
        raise Unreadable(
            f"stored text is not what it should be: {error.errors()[0]['msg']}"
        ) from None
