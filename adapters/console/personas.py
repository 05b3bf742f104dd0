"""The personas: their texts, where they are, and the prompt as it is sent; nothing is changed."""

from __future__ import annotations

from aiohttp import web

from adapters.console.rendering import Pages
from adapters.console.routes import Access, Route, Visit
from adapters.console.sources import Sources
from bot.domain.events import Conversation, NotAConversation

ANYWHERE = Conversation(0, "private", 0)  # where nothing was chosen


class PersonaPages:
    """The page."""

    def __init__(self, pages: Pages, sources: Sources) -> None:
        self._pages = pages
        self._sources = sources

    @property
    def routes(self) -> tuple[Route, ...]:
        """The one of this page."""
        return (Route("GET", "/persona", self.look, Access.LOGGED_IN),)

    async def look(self, visit: Visit) -> web.Response:
        """The page; the prompt is that of a chat, where one is named."""
        given = visit.request.query.get("where", "").strip()[:80]
        is_bad, where = False, ANYWHERE
        try:
            where = Conversation.parse(given) if given else ANYWHERE
        except NotAConversation:
            is_bad = True
        parts = self._sources.rendered(where)
        return self._pages.show(
            visit,
            "persona",
            personas=self._sources.personas(),
            parts=parts,
            tokens_of=sum(map(self._sources.estimate, parts)),
            where=given,
            is_bad=is_bad,
        )
