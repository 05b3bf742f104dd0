"""How the bot is: accounts, models, lanes, the journal; what failed, and whom nobody hears."""

from __future__ import annotations

from aiohttp import web

from adapters.console.rendering import Pages
from adapters.console.routes import Access, Route, Visit
from adapters.console.sources import Sources
from adapters.console.speech import speech_for

SHOWN = 30  # messages that nobody heard, the last ones; chats to which something waits


class HealthPages:
    """The page."""

    def __init__(self, pages: Pages, sources: Sources) -> None:
        self._pages = pages
        self._sources = sources

    @property
    def routes(self) -> tuple[Route, ...]:
        """The one of this page."""
        return (Route("GET", "/health", self.look, Access.LOGGED_IN),)

    async def look(self, visit: Visit) -> web.Response:
        """The page."""
        state, explain = self._sources.state(), self._sources.explain
        chinese = speech_for(visit.request).is_chinese
        ignored = [
            (one, explain.reason(one.reason, chinese=chinese), explain.setting(one.reason))
            for one in reversed(state.ignored[-SHOWN:])
        ]
        limits = self._sources.limits()
        return self._pages.show(
            visit, "health", state=state, limits=limits, ignored=ignored, most=SHOWN
        )
