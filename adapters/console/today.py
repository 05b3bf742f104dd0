"""The first page: who is connected, what is wrong, what it cost, what was asked last."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from aiohttp import web

from adapters.console.guard import RequestRefused
from adapters.console.rendering import Pages, go
from adapters.console.routes import Access, Route, Visit
from adapters.console.sources import Sources, note
from adapters.console.turns import told
from bot.domain.books import DayCounts, UsageSum
from bot.domain.events import Conversation, NotAConversation
from bot.domain.shown import TurnQuery, TurnRow

NEWEST = 12  # turns


class TodayPages:
    """The page, and its one switch: the bot says nothing in a chat, until it may again."""

    def __init__(self, pages: Pages, sources: Sources) -> None:
        self._pages = pages
        self._sources = sources

    @property
    def routes(self) -> tuple[Route, ...]:
        """Those of this page."""
        return (
            Route("GET", "/", self.look, Access.LOGGED_IN),
            Route("POST", "/pause", self.pause, Access.LOGGED_IN),
        )

    async def look(self, visit: Visit) -> web.Response:
        """The page."""
        sources, now = self._sources, self._sources.clock.now()
        newest, today = sources.feed.number, sources.midnight(now)
        day = await sources.showing.day(since=today, until=now + 1)
        ends = await sources.showing.ends(since=today)
        rows = await sources.showing.rows(TurnQuery())
        week = await sources.showing.costs(since=sources.midnight(now, later=-7), by="day")
        state, newest_rows = (await sources.look()).state, () if rows is None else rows.rows
        before = [one.usage.cost for one in week or () if float(one.name) < today]
        return self._pages.show(
            visit,
            "today",
            state=state,
            chats=_chats(newest_rows, paused=state.paused),
            day=day,
            ends=ends,
            used=_used(day),
            usual=sum(before) / len(before) if before else None,
            rows=None if rows is None else told(sources, visit, rows.rows[:NEWEST]),
            now=now,
            mask=sources.mask,
            newest=newest,
        )

    async def pause(self, visit: Visit) -> web.Response:
        """Keep silent in a chat, or end that."""
        silent = visit.fields.get("silent") == "1"
        try:
            where = Conversation.parse(visit.fields.get("where", ""))
        except NotAConversation:
            raise RequestRefused(400, "that is no chat") from None
        done = await self._sources.pause(where, silent=silent)
        action = "pause" if silent else "go on"
        note(self._sources, visit, action, what=str(where), outcome="ok" if done else "not now")
        return go(visit, "/")


def _chats(
    rows: Iterable[TurnRow], *, paused: Collection[Conversation]
) -> list[tuple[Conversation, str]]:
    """Where something was asked lately, that may be paused, and what it is called."""
    named: dict[Conversation, str] = {}
    for row in rows:
        name = row.group if row.where.is_group else row.name
        named.setdefault(row.where, name)
    return [
        (where, f"{name} · {where}" if name else str(where))
        for where, name in named.items()
        if where not in paused
    ]


def _used(day: DayCounts | None) -> UsageSum:
    """The sum that all models took."""
    models = () if day is None else day.models
    return UsageSum(
        *(sum(getattr(one, name) for _, one in models) for name in UsageSum.__struct_fields__)
    )
