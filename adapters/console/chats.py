"""Conversations, and one as in QQ, with what became of its messages; nothing is changed here."""

from __future__ import annotations

from urllib.parse import quote

from aiohttp import web

from adapters.console.rendering import Pages
from adapters.console.routes import Access, Route, Visit
from adapters.console.sources import Sources
from adapters.console.speech import speech_for
from adapters.console.turns import number_in
from bot.domain.events import Conversation, NotAConversation
from bot.domain.shown import ChatLine


class ChatPages:
    """The list, and one of it."""

    def __init__(self, pages: Pages, sources: Sources) -> None:
        self._pages = pages
        self._sources = sources

    @property
    def routes(self) -> tuple[Route, ...]:
        """Those of these pages."""
        return (
            Route("GET", "/chats", self.rows, Access.LOGGED_IN),
            Route("GET", "/chats/{where}", self.look, Access.LOGGED_IN),
        )

    async def rows(self, visit: Visit) -> web.Response:
        """The conversations, the last spoken in first."""
        found = await self._sources.showing.chats(number_in(visit.request.query.get("before", "")))
        told = found and [(one, quote(str(one.where), safe="")) for one in found.rows]
        return self._pages.show(visit, "chats", rows=told, following=found and found.next)

    async def look(self, visit: Visit) -> web.Response:
        """One conversation."""
        try:
            where = Conversation.parse(visit.at["where"])
        except NotAConversation:
            return self._pages.show(visit, "missing", status=404, is_away=False)
        before = number_in(visit.request.query.get("before", ""))
        found = await self._sources.showing.chat(where, before)
        if found is None:
            return self._pages.show(visit, "missing", status=503, is_away=True)
        return self._pages.show(
            visit,
            "chat",
            one=found,
            lines=[(line, self._why(visit, line)) for line in found.lines],
            link=quote(str(where), safe=""),
            estimate=self._sources.estimate,
        )

    def _why(self, visit: Visit, line: ChatLine) -> str:
        chinese = speech_for(visit.request).is_chinese
        return self._sources.explain.reason(line.reason, chinese=chinese) if line.reason else ""
