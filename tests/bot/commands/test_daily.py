from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bot.commands.digest import SETTING, DailyDigest, Standing
from bot.core.calendar_days import midnight
from bot.core.conversation import NOWHERE
from bot.core.journal import PlaceSet
from bot.core.language import Language
from bot.core.query_results import DaySum
from bot.outbox.owner_alerts import Owner
from frostagent.cancellation import background
from tests.bot.commands.books import PaperBooks
from tests.bot.outbox.post import build_outbox
from tests.cases import each_case
from tests.fakes import BOT, ManualClock, RecordingStore, RecordingTransport, SteppedClock

NINE = 9 * 3600.0
BUSY, CALM = DaySum(turns=(("answered", 2), ("running", 1))), DaySum(turns=(("answered", 1),))
MIDNIGHT = midnight(1_700_000_000.0)


class Morning:
    """A life of the bot: its books have these days, one read after the other."""

    def __init__(self, store: RecordingStore, *days: DaySum, begins: float, owners: tuple[int, ...] = (8, 9)) -> None:
        self.transport, self.clock, self.store = RecordingTransport(), SteppedClock(), store
        self.clock.time = MIDNIGHT + begins
        self.outbox, sender = build_outbox(self.transport, store, ManualClock())
        self.owner = Owner(owners=frozenset(owners), sender=sender, clock=self.clock)
        self.books = PaperBooks(days=days)

    async def pass_time(self, seconds: float) -> list[str]:
        """What the owners have been told by the end of it, a minute at a time."""
        while seconds > 0:
            await self.clock.advance(min(60.0, seconds))
            seconds -= 60.0
        await self.outbox.wait_idle()
        return self.transport.texts


async def stands() -> Standing:
    return Standing()


@asynccontextmanager
async def morning(
    store: RecordingStore, *days: DaySum, begins: float, at: float | None = NINE, language: Language = Language.CHINESE
) -> AsyncIterator[Morning]:
    life = Morning(store, *days, begins=begins)
    daily = DailyDigest(
        at=at,
        language=language,
        books=life.books,
        stands=stands,
        choices=store,
        store=store,
        owner=life.owner,
        clock=life.clock,
    )
    async with asyncio.timeout(30), life.outbox.open(), background(daily.run()):
        yield life


async def test_each_owner_hears_at_that_time_how_yesterday_went_once_over_restarts() -> None:
    store = RecordingStore()
    told = "昨天：3 个问题，答了 2 个（前天 1），还在答 1 个"
    async with morning(store, BUSY, CALM, begins=NINE - 90) as life:
        life.owner.connected(BOT)
        assert await life.pass_time(60) == []
        assert await life.pass_time(60) == [told, told]
        assert {action.conversation.session_id for action in life.transport.sent} == {8, 9}
        assert [since for since, _, _ in life.books.asked] == [
            midnight(MIDNIGHT, later=-1),
            midnight(MIDNIGHT, later=-2),
        ]
    async with morning(store, BUSY, CALM, begins=NINE + 600) as later:
        later.owner.connected(BOT)
        assert await later.pass_time(120) == []
        assert await later.pass_time(86_400 - 120) == ["昨天：3 个问题，答了 2 个（前天 1），还在答 1 个"] * 2


async def test_who_was_down_at_that_time_is_late_and_waits_for_a_connection() -> None:
    async with morning(RecordingStore(), BUSY, CALM, begins=NINE + 7200, language=Language.ENGLISH) as life:
        assert await life.pass_time(60) == []
        life.owner.connected(BOT)
        assert (
            await life.pass_time(60) == ["Yesterday: 3 questions, 2 answered (the day before 1), being answered 1"] * 2
        )


async def test_what_cannot_be_written_down_is_not_said_yet() -> None:
    store = RecordingStore()
    store.trouble = True
    async with morning(store, BUSY, CALM, begins=NINE) as life:
        life.owner.connected(BOT)
        assert await life.pass_time(60) == []
        store.trouble = False
        assert len(await life.pass_time(60)) == 2


@each_case(("days", "at"), [((DaySum(), BUSY), NINE), ((BUSY, CALM), None)])
async def test_a_day_without_anything_is_not_told_and_none_where_nobody_wants_it(
    days: tuple[DaySum, ...], at: float | None
) -> None:
    store = RecordingStore()
    async with morning(store, *days, begins=NINE, at=at) as life:
        life.owner.connected(BOT)
        assert await life.pass_time(300) == []
        assert store.entries == []
        assert len(life.books.asked) == (0 if at is None else 2)  # once for each day, not at each look


async def test_a_clock_put_back_over_midnight_tells_no_day_twice_and_one_that_was_years_ahead_silences_nothing() -> (
    None
):
    store = RecordingStore()
    async with morning(store, *[BUSY] * 8, begins=0.0, at=0.0) as life:
        life.owner.connected(BOT)
        assert len(await life.pass_time(60)) == 2
    async with morning(store, *[BUSY] * 8, begins=-120.0, at=0.0) as later:
        later.owner.connected(BOT)
        assert await later.pass_time(240) == []
        assert len(await later.pass_time(86_400)) == 2
    store.put(PlaceSet(NOWHERE, SETTING, "2099-01-01"))
    async with morning(store, *[BUSY] * 8, begins=0.0, at=0.0) as ahead:
        ahead.owner.connected(BOT)
        assert len(await ahead.pass_time(60)) == 2
