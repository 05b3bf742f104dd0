"""Drafts: what the bot would have said in a group, for its owners to publish; how rows name
them, and the port that tells where nothing is done.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

DRAFT, PUBLISHED = "draft-", "published-"


class DraftMedia(Protocol):
    """Where media of drafts are kept that are too large for the journal, by names of letters,
    numbers and `-`. Nothing raises.
    """

    async def keep(self, name: str, content: bytes) -> None:
        """Have it there from now on, if there is room."""
        ...

    async def find(self, name: str) -> bytes:
        """The bytes kept under that name; empty where there are none."""
        ...

    async def keep_only(self, names: Collection[str]) -> None:
        """Nothing else stays."""
        ...


def draft_id(number: int) -> str:
    """How the ids of its sends begin."""
    return f"{DRAFT}{number}-"


def published_id(number: int) -> str:
    """How the ids of the sends begin by which it was published."""
    return f"{PUBLISHED}{number}-"


def published_line(number: int, at: float) -> str:
    """The id under which what was published then is told; QQ's own is not known before that."""
    return f"{draft_id(number)}{at:.3f}"


def draft_of(send_id: str) -> int:
    """The number of the draft that a send is part of; 0 for any other send."""
    return _number(send_id, DRAFT)


def published_of(send_id: str) -> int:
    """The number of the draft that a send published; 0 for any other send."""
    return _number(send_id, PUBLISHED)


def _number(send_id: str, kind: str) -> int:
    number = send_id.removeprefix(kind).partition("-")[0] if send_id.startswith(kind) else ""
    return int(number) if number.isdecimal() else 0
