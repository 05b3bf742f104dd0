"""A request that midnight overtakes, also in the nights in which the clocks change: it counts once, on the day on which
it ended, and the sums are those of the rows, after a restart too.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from adapters.storage.store import SqlStore, open_store
from bot.app import migrate
from bot.budget.limits import ALL, Amount, Cap, DayLimits, LimitLevel, OwnLimits
from bot.budget.spending import Spending
from bot.core.calendar_days import midnight
from bot.core.journal import Entry, UsageAdded, UsageReserved
from frostagent.clock import SystemClock
from frostagent.types.messages import Usage
from tests.bot.budget.till import opened
from tests.fakes import GROUP, ManualClock
from tests.settings import kept_settings

NIGHTS = {
    "no midnight in Havana": ("America/Havana", (2026, 3, 8), 23),
    "midnight twice in Havana": ("America/Havana", (2026, 11, 1), 25),
    "no midnight in Cairo": ("Africa/Cairo", (2026, 4, 24), 23),
    "an hour before midnight twice in Cairo": ("Africa/Cairo", (2026, 10, 29), 25),
    "as ever": ("Asia/Shanghai", (2026, 3, 8), 24),
}


@pytest.fixture(params=[*NIGHTS.values()], ids=[*NIGHTS])
def day(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[float, int]]:
    """A noon, and how many hours that day has."""
    zone, date, hours = request.param
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    year, month, number = date
    yield datetime(year, month, number, 12, tzinfo=ZoneInfo(zone)).timestamp(), hours
    monkeypatch.undo()
    time.tzset()


@asynccontextmanager
async def life(folder: Path, clock: ManualClock) -> AsyncIterator[tuple[SqlStore, Spending]]:
    async with open_store(
        f"sqlite:///{folder}/bot.db",
        keep_days=0,
        keep_messages=0,
        clock=SystemClock(),
        trouble=lambda _: None,
        migrate=migrate,
    ) as store:
        own = OwnLimits(settings=kept_settings(store, store.books, clock=clock), clock=clock)
        limits, nobody = DayLimits(user=Cap(tokens=100)), frozenset[int]()
        spending = Spending(limits, own=own, book=store.books, owners=nobody, clock=clock, tell=lambda _: None)
        assert await spending.load()
        yield store, spending


async def test_a_request_that_midnight_overtakes_counts_once(day: tuple[float, int], tmp_path: Path) -> None:
    noon, hours = day
    clock = ManualClock(noon)

    def reserved(number: int, at: float) -> UsageReserved:
        return UsageReserved(turn_id="t1", number=number, model="m", usage=Usage(90, 10), at=at)

    async with life(tmp_path, clock) as (store, spending):

        def see(*entries: Entry) -> None:
            for entry in entries:
                spending.see(entry)
                store.put(entry)

        ends = spending.ends()
        assert ends - midnight(noon) == hours * 3600
        clock.time = ends - 2
        see(opened("t1", GROUP, 777), reserved(1, clock.time), reserved(2, clock.time))
        assert (spending.taken(777).tokens, spending.rung(GROUP, 777)) == (200, LimitLevel.SPENT)
        clock.time = ends + 1
        assert (spending.taken(777), spending.reserved, spending.rung(GROUP, 777)) == (
            Amount(),
            Amount(),
            LimitLevel.ALL,
        )
        see(UsageAdded(turn_id="t1", model="m", usage=Usage(60, 10, reserved=1), at=clock.time))
        assert (spending.taken(777).tokens, spending.rung(GROUP, 777)) == (70, LimitLevel.CHEAP)
        await agree(store, spending, before=100)
    async with life(tmp_path, clock) as (store, spending):  # what nobody settled stays with the day before
        assert (spending.taken(777).tokens, spending.rung(GROUP, 777)) == (70, LimitLevel.CHEAP)
        await agree(store, spending, before=100)


async def agree(store: SqlStore, spending: Spending, *, before: int) -> None:
    """The sums of today are those of the rows, and the day before has so many tokens."""
    begins = spending.ends() - 86_400  # the day after has 24 hours
    today = await store.books.usage(since=begins, where=None, asker=777)
    both = await store.books.usage(since=begins - 86_400, where=None, asker=777)
    assert today is not None
    assert both is not None
    assert today.prompt + today.completion == spending.taken(777).tokens == spending.taken(ALL).tokens
    assert both.prompt + both.completion == spending.taken(777).tokens + before
