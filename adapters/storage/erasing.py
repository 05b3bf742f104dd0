"""Forgetting by a running bot: in the thread that writes, without compacting the whole file.

SQLite writes zeros over what it deletes (`database.py`), and the log is emptied: no byte is left.
PostgreSQL frees what was deleted when it vacuums.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor
from functools import partial
from typing import TypeVar

from sqlalchemy import Connection

from adapters.storage.batches import EntryBatches
from adapters.storage.database import Database
from adapters.storage.erasure import empty_log, erase_group, erase_user
from adapters.storage.failures import Unusable, words
from adapters.storage.newer import newer
from bot.domain.errors import BotError
from bot.domain.notes import WHOLE, Share

T = TypeVar("T")


class NotErased(BotError):
    """It could not be forgotten just now, wholly or at all."""


class SqlErasing:
    """Fits `Eraser`. `commit` waits until all that was put is in its tables."""

    def __init__(
        self,
        *,
        database: Database,
        batches: EntryBatches,
        writing: Executor,
        commit: Callable[[], Awaitable[bool]],
        now: Callable[[], float],
        share: Share = WHOLE,
    ) -> None:
        self._database = database
        self._batches = batches
        self._writing = writing
        self._commit = commit
        self._now = now
        self._share = share

    async def forget_user(self, user: int, *, since: float = math.inf) -> int:
        """Erase a person; how many rows went. Raises NotErased."""
        return await self._forget(partial(erase_user, user=user, now=self._now()), since)

    async def forget_group(self, group: int, *, since: float = math.inf) -> int:
        """Erase a group; how many rows went. Raises NotErased."""
        return await self._forget(partial(erase_group, group=group, now=self._now()), since)

    async def _forget(self, erase: Callable[..., dict[str, int]], since: float) -> int:
        if not await self._commit():
            raise NotErased("the journal cannot be written now")

        def work(connection: Connection) -> dict[str, int]:
            return erase(connection, newer=newer(connection, since, self._share.has_place))

        return await self._do(lambda: sum(self._batches.run(work).values()))

    async def sweep(self) -> None:
        """Empty SQLite's log. Raises NotErased where somebody reads all the time."""

        def work() -> None:
            with self._database.connect() as connection:
                empty_log(connection)

        if self._database.is_sqlite:
            await self._do(work)

    async def _do(self, work: Callable[[], T]) -> T:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._writing, work)
        except Unusable as error:
            raise NotErased(str(error)) from error
        except Exception as error:
            raise NotErased(words(error)) from error
