"""Drafts of what the bot would have said in a group: their ids in rows, and the port of their
media.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

DRAFT, PUBLISHED = "draft-", "published-"


class DraftMedia(Protocol):
    """Stores media of drafts that are too large for the journal, under names of letters, digits and
    `-`. Never raises.
    """

    async def keep(self, name: str, content: bytes) -> None:
        """Store it, if there is room."""
        ...

    async def find(self, name: str) -> bytes:
        """The stored bytes, or empty."""
        ...

    async def keep_only(self, names: Collection[str]) -> None: ...


def draft_id(number: int) -> str:
    """The prefix of the ids of its sends."""
    return f"{DRAFT}{number}-"


def published_id(number: int) -> str:
    """The prefix of the ids of the sends that publish it."""
    return f"{PUBLISHED}{number}-"


def published_line(number: int, at: float) -> str:
    """The id of the published message in the history, before QQ's own is known."""
    return f"{draft_id(number)}{at:.3f}"


def draft_of(send_id: str) -> int:
    """The number of the draft that a send belongs to, else 0."""
    return _number(send_id, DRAFT)


def published_of(send_id: str) -> int:
    """The number of the draft that a send publishes, else 0."""
    return _number(send_id, PUBLISHED)


def _number(send_id: str, kind: str) -> int:
    number = send_id.removeprefix(kind).partition("-")[0] if send_id.startswith(kind) else ""
    return int(number) if number.isdecimal() else 0
