"""The tools: which can be used, why others cannot, for whom, and how their latest calls went."""

from __future__ import annotations

from aiohttp import web

from adapters.console.rendering import Pages
from adapters.console.routes import Access, Route, Visit
from adapters.console.sources import Sources


class ToolPages:
    """The page."""

    def __init__(self, pages: Pages, sources: Sources) -> None:
        self._pages = pages
        self._sources = sources

    @property
    def routes(self) -> tuple[Route, ...]:
        """The one of this page."""
        return (Route("GET", "/tools", self.look, Access.LOGGED_IN),)

    async def look(self, visit: Visit) -> web.Response:
        """The page; those that cannot be used first."""
        found = await self._sources.showing.tools()
        used = {one.name: one for one in found or ()}
        tools = sorted(self._sources.tools(), key=lambda one: (not one.reason, one.name))
        told = [(one, used.get(one.name)) for one in tools]
        return self._pages.show(visit, "tools", tools=told, is_away=found is None)
