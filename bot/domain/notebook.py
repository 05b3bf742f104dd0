"""Our needs of what is remembered: reading the facts, and the part of the `memory` tool."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from msgspec import Struct

from bot.domain.events import Conversation
from bot.domain.memories import Kind, StoredFact, Visibility
from bot.domain.tool import ToolContext


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
