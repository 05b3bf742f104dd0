"""Facts that are kept beyond a conversation's window: whom they are about, who said them, and where
they may be told again.
"""

from __future__ import annotations

from enum import StrEnum
from typing import ClassVar, Literal

from msgspec import Struct

from bot.domain.events import Conversation


class Visibility(StrEnum):
    """Where a fact may be told: in its own conversation, wherever its person asks, everywhere.

    What was said in private is told in no group, whatever its visibility.
    """

    HERE = "here"
    PERSON = "person"
    EVERYWHERE = "everywhere"


class Kind(StrEnum):
    """Whether a fact is about what somebody likes or cannot bear, how he lives, what he wants to be
    called, what is planned, or something else.
    """

    TASTE = "taste"
    LIFE = "life"
    NAME = "name"
    PLAN = "plan"
    OTHER = "other"


class StoredFact(Struct, frozen=True, kw_only=True):
    """One fact, said in `scope` by `author` about `subject` (QQ numbers; 0: the conversation).

    `sources` are the ids of the messages it was taken from. Times are in seconds since 1970; from
    `expires` on it is gone.
    """

    memory_id: str
    scope: Conversation
    subject: int
    author: int
    text: str
    kind: Kind = Kind.OTHER
    visibility: Visibility = Visibility.HERE
    sources: tuple[str, ...] = ()
    made: float = 0.0
    used: float = 0.0
    expires: float = 0.0


# --- entries of the journal -----------------------------------------------------------------------


class MemoryKept(Struct, frozen=True, tag="memory_kept"):
    """A fact is remembered, or the one of this id reads otherwise now; `terms` are what it is found
    by.
    """

    memory: StoredFact
    terms: tuple[str, ...]
    type: ClassVar[Literal["memory_kept"]] = "memory_kept"


class MemoriesUsed(Struct, frozen=True, tag="memories_used"):
    """These facts were told to a model; they are kept until `expires`."""

    memory_ids: tuple[str, ...]
    at: float
    expires: float
    type: ClassVar[Literal["memories_used"]] = "memories_used"


class MemoriesForgotten(Struct, frozen=True, tag="memories_forgotten"):
    """These facts are no more; nor is anything picked again from what these people had said there
    (a conversation and an account) before.
    """

    memory_ids: tuple[str, ...]
    said: tuple[tuple[Conversation, int], ...] = ()
    type: ClassVar[Literal["memories_forgotten"]] = "memories_forgotten"
