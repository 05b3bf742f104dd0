"""Facts that are kept beyond a conversation's window: whom they are about, who said them, and where
they may be told again.
"""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum
from typing import ClassVar, Literal, Protocol

from msgspec import Struct

from bot.core.conversation import Conversation
from frostagent.types.tools import ToolContext


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


class Memories(Protocol):
    """The facts that are remembered, to be read; they are written as entries of the journal."""

    async def has_any(self, where: Conversation, asker: int) -> bool:
        """Whether there may be facts to be told there to whom asks."""
        ...

    async def recall(
        self, where: Conversation, asker: int, terms: Collection[str]
    ) -> tuple[StoredFact, ...]:
        """Those that have some of these words and may be told there to whom asks, the best first;
        none where they cannot be read.
        """
        ...

    async def listed(
        self, *, scope: Conversation | None = None, subject: int | None = None
    ) -> tuple[StoredFact, ...] | None:
        """Those of a conversation, or about somebody, or both, the latest first; None where they
        cannot be read.
        """
        ...


class Noted(Struct, frozen=True):
    """An answer of the notebook, for the model, and the ids of the messages of its conversation
    whose words it tells. Where it tells facts from elsewhere, `kept` is the answer without them.
    """

    text: str
    sources: tuple[str, ...] = ()
    kept: str = ""


class Notebook(Protocol):
    """The facts a run may write, look up and have forgotten, each by its rights; `about` is `me`,
    `here` or a person's `#n`. All raise InvalidArguments, ToolDenied.
    """

    async def write(
        self, context: ToolContext, text: str, *, about: str, kind: Kind, told: Visibility
    ) -> Noted:
        """Remember a fact; what is kept, in words."""
        ...

    async def search(self, context: ToolContext, words: str) -> Noted:
        """The facts that have these words, a line each."""
        ...

    async def listed(self, context: ToolContext, *, about: str) -> Noted:
        """All facts about a person or this conversation, a line each."""
        ...

    async def forget(self, context: ToolContext, memory_id: str) -> Noted:
        """Have a fact forgotten, by the id that the other answers name."""
        ...
