"""News as it happens, for who watches."""

from __future__ import annotations

from typing import Protocol

from msgspec import Struct


class News(Struct, frozen=True):
    """Something happened to the turn or message of that name; numbers rise."""

    number: int
    name: str


class Feed(Protocol):
    """Tells what is new, as it happens."""

    @property
    def number(self) -> int:
        """That of the latest."""
        ...

    async def after(self, number: int, *, within: float) -> tuple[News, ...]:
        """All that is newer than that, waited for so many seconds; nothing where nothing came."""
        ...
