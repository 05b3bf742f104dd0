"""The simulated group in the browser: talk to the bot without QQ. There where a chat of that kind
runs.
"""

from __future__ import annotations

import asyncio
from urllib.parse import quote

from aiohttp import web

from adapters.console.rendering import Pages, go
from adapters.console.routes import Access, Route, Visit
from adapters.console.sources import Sources, note
from adapters.console.turns import told
from bot.domain.shown import Trying, TurnQuery

LONGEST = 2000  # characters of a line
PATIENCE = 7.0  # seconds for an answer, until the page is shown without it
NEWEST = 3


class TryPages:
    """The page, and what is said there."""

    def __init__(self, pages: Pages, sources: Sources, trying: Trying) -> None:
        self._pages = pages
        self._sources = sources
        self._trying = trying

    @property
    def routes(self) -> tuple[Route, ...]:
        """Those of this page."""
        return (
            Route("GET", "/try", self.look, Access.LOGGED_IN),
            Route("POST", "/try", self.say, Access.LOGGED_IN),
        )

    async def look(self, visit: Visit) -> web.Response:
        """The page."""
        newest = self._sources.feed.number
        rows = await self._sources.showing.rows(TurnQuery())
        return self._pages.show(
            visit,
            "try",
            trying=self._trying,
            lines=self._trying.lines,
            speaker=visit.request.query.get("as", ""),
            rows=None if rows is None else told(self._sources, visit, rows.rows[:NEWEST]),
            newest=newest,
        )

    async def say(self, visit: Visit) -> web.Response:
        """Say a line, or let something go wrong; what is answered soon is there on the page."""
        who, text = visit.fields.get("as", ""), visit.fields.get("text", "").strip()[:LONGEST]
        fault = visit.fields.get("fault", "")
        if who not in self._trying.people:
            return web.Response(status=400, text="nobody of that name is in the group")
        if fault in self._trying.faults:
            text = f"!{fault}"
        elif text.startswith("!"):
            text = text.lstrip("!")
        elif text and visit.fields.get("call") == "1":
            text = f"@bot {text}"
        if text:
            note(self._sources, visit, "try", what=fault)
            try:
                async with asyncio.timeout(PATIENCE):
                    await self._trying.say(who, text)
            except TimeoutError:
                pass  # it goes on, and is told as news
        return go(visit, f"/try?as={quote(who)}")
