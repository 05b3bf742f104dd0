"""The bot with nothing behind its journal: what it costs to write things down is the difference to this one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from typing import Any

from bot import app
from bot.cli.cli import main
from bot.core.conversation import Conversation
from bot.core.events import MessageReceived
from bot.core.journal import Entry, KnownLine, LogQuery, Recovery, Remembered
from bot.core.other_bots import EVERY_ACCOUNT
from bot.core.ports import Store

REPLACED = "open_store"


class NullStore:
    """Takes everything and keeps nothing."""

    scope = EVERY_ACCOUNT

    def put(self, *entries: Entry) -> None:
        """Nothing is written."""

    async def commit(self, *entries: Entry) -> bool:
        return True

    async def remember(self, conversation: Conversation) -> Remembered:
        return Remembered()

    async def find(self, conversation: Conversation, message_id: str) -> MessageReceived | None:
        return None

    async def search(self, query: LogQuery) -> tuple[MessageReceived, ...]:
        return ()

    async def described(self, digest: str) -> str:
        return ""

    async def spoken(self, turn_id: str) -> None:
        return None

    async def heard(self, conversation: Conversation, message_ids: Collection[str]) -> Collection[str]:
        return ()

    async def latest(self, conversation: Conversation) -> tuple[KnownLine, ...]:
        return ()

    async def recover(self) -> Recovery:
        return Recovery()

    @property
    def memories(self) -> NullStore:
        """Nor is anything remembered for longer."""
        return self

    books = erasing = jobs = memories

    async def choices(self) -> dict[Conversation, str]:
        return {}

    async def settings(self, _name: str) -> dict[Conversation, str]:
        return {}

    async def taken(self, *, since: float, until: float) -> tuple[()]:
        """Nothing was taken before."""
        return ()

    async def latest_payers(self, *, latest: int) -> tuple[()]:
        return ()

    async def has_any(self, *_: Any) -> bool:
        return False

    def restored_at(self) -> float:
        return 0.0

    async def next_wake(self, *_: Any) -> None:
        """No job waits."""

    async def due(self, *_: Any) -> tuple[()]:
        return ()

    async def in_progress(self, *_: Any) -> tuple[()]:
        return ()

    async def recall(self, *_: Any) -> tuple[()]:
        return ()

    async def listed(self, **_: Any) -> tuple[()]:
        return ()


@asynccontextmanager
async def open_nothing(*_: Any, **__: Any) -> AsyncIterator[Store]:
    """In place of `adapters.storage.store.open_store`."""
    yield NullStore()


if __name__ == "__main__":
    setattr(app, REPLACED, open_nothing)
    main()
