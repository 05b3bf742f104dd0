"""News as it happens: one stream a page, by server-sent events.

aiohttp does not end a stream's handler when the browser leaves: a look at its connection does, so
that whoever goes quickly from page to page is not refused for those left behind.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter

from aiohttp import web

from adapters.console import http
from adapters.console.guard import RequestRefused
from adapters.console.logins import Logins
from adapters.console.routes import Access, Route, Visit
from adapters.console.sources import Sources
from bot.domain.console_views import Feed

BEAT = 10.0  # seconds between two signs of life
LOOK = 0.5  # seconds that a page which was left, or a login that ended, still counts
GATHER = 0.3  # seconds that news are gathered for: a busy bot is not written about at each message
RETRY = 3000  # milliseconds until a browser tries again
MOST = 50  # streams at a time
OF_ONE = 4
"""Of one login: a browser keeps six connections to us, and a page that gets none hangs."""
NUMBER = re.compile(r"[0-9]{1,15}")
STREAM = {"Content-Type": "text/event-stream; charset=utf-8", "X-Accel-Buffering": "no"}


class LivePages:
    """The stream."""

    def __init__(self, logins: Logins, sources: Sources) -> None:
        self._logins = logins
        self._sources = sources
        self.open: Counter[str] = Counter()

    @property
    def routes(self) -> tuple[Route, ...]:
        """The one of it."""
        return (Route("GET", "/live", self.stream, Access.LOGGED_IN, lasts=True),)

    async def stream(self, visit: Visit) -> web.StreamResponse:
        """The news of the journal."""
        return await self.follow(visit, self._sources.feed)

    async def follow(self, visit: Visit, feed: Feed) -> web.StreamResponse:
        """Events from the last one that the browser had, until it leaves or its login ends."""
        name = visit.login.name if visit.login else ""
        if self.open.total() >= MOST or self.open[name] >= OF_ONE:
            raise RequestRefused(503, "too many pages are open")
        answer = web.StreamResponse(headers=STREAM)
        self.open[name] += 1
        try:
            async with asyncio.timeout(http.WRITE_WITHIN):
                await answer.prepare(visit.request)
            await self._send(visit, answer, feed)
        except ConnectionError:
            pass  # whoever looked has left
        except TimeoutError:
            http.hang_up(visit.request)  # or takes nothing
        finally:
            self.open[name] -= 1
        return answer

    async def _send(self, visit: Visit, answer: web.StreamResponse, feed: Feed) -> None:
        number = _number(visit, feed.number)
        await answer.write(f"retry: {RETRY}\n\n".encode())
        quiet = 0.0
        while visit.login in self._logins.open and visit.request.transport is not None:
            news = await feed.after(number, within=LOOK)
            quiet += LOOK
            if not news and quiet < BEAT:
                continue
            quiet = 0.0
            lines = [
                f"id: {one.number}\nevent: news\ndata: {json.dumps({'name': one.name})}\n\n"
                for one in news
            ]
            async with asyncio.timeout(http.WRITE_WITHIN):
                await answer.write("".join(lines or [": \n\n"]).encode())
            if news:
                number = news[-1].number
                await self._sources.clock.sleep(GATHER)


def _number(visit: Visit, latest: int) -> int:
    """Behind which event to begin: what the browser had last, or the page when it was made."""
    had = visit.request.headers.get("Last-Event-ID", visit.request.query.get("after", ""))
    return min(int(had), latest) if NUMBER.fullmatch(had) else latest
