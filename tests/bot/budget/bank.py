"""A bot's journal and its sums, which pay for trials."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from sqlalchemy import select

from adapters.storage.store import SqlStore
from adapters.storage.tables import usage
from bot.budget.limits import DayLimits, OwnLimits
from bot.budget.spending import Spending
from bot.budget.trial_account import TrialAccount
from bot.core.ports import Store
from bot.core.trial_group import TrialLimits
from bot.memory.journal_observers import ObservedStore
from frostagent.clock import SystemClock
from frostagent.types.ports import Clock
from tests.adapters.storage.conftest import opened
from tests.settings import kept_settings


@dataclass
class Bank:
    journal: SqlStore
    store: Store
    spending: Spending
    clock: Clock

    def account(self, ceiling: TrialLimits, **more: Any) -> TrialAccount:
        given: dict[str, Any] = {
            "store": self.store,
            "books": self.journal.books,
            "spending": self.spending,
            "clock": self.clock,
        }
        return TrialAccount(ceiling, **given | more)

    async def rows(self) -> list[Any]:
        """The rows of usage, oldest first."""
        found = await self.journal.reader.read(lambda connection: connection.execute(select(usage)).all())
        assert found is not None
        return [*found]


@asynccontextmanager
async def bank(url: str, *, limits: DayLimits | None = None, clock: Clock | None = None) -> AsyncIterator[Bank]:
    """An open one; `limits` are those of the bot's day."""
    clock = clock or SystemClock()
    async with opened(url, clock=SystemClock()) as one:
        own = OwnLimits(settings=kept_settings(one.store, one.store.books, clock=clock), clock=clock)
        spending = Spending(
            limits or DayLimits(), own=own, book=one.store.books, owners=frozenset(), clock=clock, tell=lambda _: None
        )
        assert await spending.load()
        yield Bank(one.store, ObservedStore(one.store, [spending]), spending, clock)
