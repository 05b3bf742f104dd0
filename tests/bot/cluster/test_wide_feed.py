"""What others of a cluster began or ended is news for whoever watches, once, and what is on his page already is not."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from bot.cluster.other_bots import WATCHED, WideFeed
from bot.core.console_views import News, TurnQuery, TurnRow, TurnRows
from bot.core.conversation import Conversation
from bot.memory.newest import Newest
from frostagent.cancellation import background
from tests.fakes import GROUP, SteppedClock

THERE = Conversation(2000, "group", 7)
BEFORE = 1_600_000_000.0  # seconds since 1970, long before the clock's


def row(name: str, at: float, *, where: Conversation = THERE, ended: float | None = None) -> TurnRow:
    return TurnRow(
        turn_id=name,
        message_id=f"m{name}",
        where=where,
        group="",
        asker=1,
        name="x",
        text="y",
        at=at,
        outcome="" if ended is None else "answered",
        seconds=None if ended is None else ended - at,
    )


class Journal:
    """The rows there are; None where they cannot be read."""

    def __init__(self, *rows: TurnRow) -> None:
        self.found: list[TurnRow] | None = [*rows]
        self.queries: list[TurnQuery] = []

    async def rows(self, query: TurnQuery) -> TurnRows | None:
        self.queries.append(query)
        return None if self.found is None else TurnRows(tuple(self.found), None)


class Watching:
    """A feed over such a journal; `looks` is how often was done what is done each time."""

    def __init__(self, *rows: TurnRow) -> None:
        self.clock, self.journal, self.newest, self.looks = SteppedClock(), Journal(*rows), Newest(), 0
        showing: Any = self.journal
        self.feed = WideFeed(self.newest, showing, ours=lambda where: where == GROUP, clock=self.clock)

    async def then(self) -> None:
        self.looks += 1

    async def after(self, number: int) -> list[str]:
        return [one.name for one in await self.feed.after(number, within=0.001)]


@asynccontextmanager
async def watched(*rows: TurnRow) -> AsyncIterator[Watching]:
    """The same, at work."""
    watching = Watching(*rows)
    async with background(watching.feed.run(watching.then)):
        yield watching


async def test_what_begins_or_ends_elsewhere_while_somebody_watches_is_news_once() -> None:
    async with watched(row("old", BEFORE, ended=BEFORE + 2), row("long", BEFORE)) as watching:
        number, now = watching.feed.number, watching.clock.now()
        await watching.clock.advance(1)
        assert await watching.after(number) == []
        watching.journal.found = [
            row("new", now + 1),
            row("own", now + 1, where=GROUP),
            row("old", BEFORE, ended=BEFORE + 2),
            row("long", BEFORE, ended=now + 1),
        ]
        for _ in range(3):
            await watching.clock.advance(1)
        assert await watching.after(number) == ["new", "long"]
        watching.journal.found[0] = row("new", now + 1, ended=now + 3)
        await watching.clock.advance(1)
        assert await watching.after(number) == ["new", "long", "new"]
        assert watching.journal.queries == [TurnQuery()] * 5
        assert watching.looks == 5


async def test_what_was_between_a_page_and_the_first_look_is_not_missed() -> None:
    async with watched() as watching:
        number, now = watching.feed.number, watching.clock.now()
        watching.journal.found = [row("begun", now), row("ended", BEFORE, ended=now), row("seen", now - 1)]
        await watching.clock.advance(1)
        assert await watching.after(number) == ["begun", "ended"]


async def test_where_nobody_watches_nothing_is_read_and_who_comes_back_is_told_from_then_on() -> None:
    async with watched() as watching:
        await watching.clock.advance(3)
        assert (watching.journal.queries, watching.looks) == ([], 0)
        assert watching.feed.number == 0
        await watching.clock.advance(WATCHED + 10)
        assert len(watching.journal.queries) <= WATCHED
        read = len(watching.journal.queries)
        now = watching.clock.now()
        watching.journal.found = [row("meanwhile", now - 5, ended=now - 4)]
        number = watching.feed.number
        await watching.clock.advance(1)
        assert await watching.after(number) == []
        assert len(watching.journal.queries) == read + 1


async def test_a_journal_that_cannot_be_read_is_asked_again_and_silence_is_named_by_its_message() -> None:
    async with watched() as watching:
        number, now = watching.feed.number, watching.clock.now()
        watching.journal.found = None
        await watching.clock.advance(1)
        watching.newest.add("own")
        assert await watching.feed.after(number, within=0.001) == (News(1, "own"),)
        silent = row("", now + 1)
        watching.journal.found = [silent]
        await watching.clock.advance(1)
        assert await watching.after(1) == ["m"]
