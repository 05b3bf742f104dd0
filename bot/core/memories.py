"""Facts that outlast a conversation's window: their subject, their author, and where they may be
repeated.
"""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum
from typing import ClassVar, Literal, Protocol

from msgspec import Struct

from bot.core.conversation import Conversation
from frostagent.types.tools import ToolContext


class Visibility(StrEnum):
    """Where a fact may be repeated: in its own conversation, wherever its person asks, or
    everywhere. What was said in private is never repeated in a group.
    """

    HERE = "here"
    PERSON = "person"
    EVERYWHERE = "everywhere"


class Kind(StrEnum):
    """The kind of a fact: likes and dislikes, circumstances, a preferred name, plans, or others."""

    TASTE = "taste"
    LIFE = "life"
    NAME = "name"
    PLAN = "plan"
    OTHER = "other"


class StoredFact(Struct, frozen=True, kw_only=True):
    """A fact said in `scope` by `author` about `subject` (QQ numbers; 0: the conversation).
    `sources` are the ids of the messages it was taken from. Times are in seconds since 1970; at
    `expires` it is gone.
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
    """A fact is stored, or replaces the one of its id; `terms` are its search terms."""

    memory: StoredFact
    terms: tuple[str, ...]
    type: ClassVar[Literal["memory_kept"]] = "memory_kept"


class MemoriesUsed(Struct, frozen=True, tag="memories_used"):
    """A model was given these facts; they are now kept until `expires`."""

    memory_ids: tuple[str, ...]
    at: float
    expires: float
    type: ClassVar[Literal["memories_used"]] = "memories_used"


class MemoriesForgotten(Struct, frozen=True, tag="memories_forgotten"):
    """These facts are deleted, and none is extracted again from earlier messages of these people
    there (a conversation and an account).
    """

    memory_ids: tuple[str, ...]
    said: tuple[tuple[Conversation, int], ...] = ()
    type: ClassVar[Literal["memories_forgotten"]] = "memories_forgotten"


class Memories(Protocol):
    """Reads the stored facts; they are written as entries of the journal."""

    async def has_any(self, where: Conversation, asker: int) -> bool:
        """Whether there may be facts for this asker there."""
        ...

    async def recall(
        self, where: Conversation, asker: int, terms: Collection[str]
    ) -> tuple[StoredFact, ...]:
        """The facts with some of these terms that this asker may be given there, the best first;
        empty if they cannot be read.
        """
        ...

    async def listed(
        self, *, scope: Conversation | None = None, subject: int | None = None
    ) -> tuple[StoredFact, ...] | None:
        """The facts of a conversation, about a person, or both, the latest first; None if they
        cannot be read.
        """
        ...


class Noted(Struct, frozen=True):
    """An answer of the notebook, for the model, and the ids of the messages of its conversation
    that it repeats. If it contains facts from elsewhere, `kept` is the answer without them.
    """

    text: str
    sources: tuple[str, ...] = ()
    kept: str = ""


class Notebook(Protocol):
    """The facts that a run may write, search and delete, by its rights; `about` is `me`, `here` or
    a person's `#n`. All methods raise InvalidArguments and ToolDenied.
    """

    async def write(
        self, context: ToolContext, text: str, *, about: str, kind: Kind, told: Visibility
    ) -> Noted:
        """Store a fact; the answer says what was stored."""
        ...

    async def search(self, context: ToolContext, words: str) -> Noted:
        """The facts that match these words, a line each."""
        ...

    async def listed(self, context: ToolContext, *, about: str) -> Noted:
        """All facts about a person or this conversation, a line each."""
        ...

    async def forget(self, context: ToolContext, memory_id: str) -> Noted:
        """Delete a fact, by the id in other answers."""
        ...
