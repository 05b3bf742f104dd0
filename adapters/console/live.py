"""News as they happen: one stream per page, by server-sent events.

aiohttp does not end a stream's handler when the browser leaves. So the handler checks its
connection every LOOK seconds, so that streams of abandoned pages do not use up the limits.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from typing import Final

from aiohttp import web

from adapters.console import server
from adapters.console.http import RequestRefused, hang_up
from adapters.console.logins import LOGIN, LOGINS
from adapters.console.sources import SOURCES
from bot.core.console_views import Feed

BEAT = 10.0  # seconds between keep-alives
LOOK = 0.5  # seconds until an abandoned page or an ended login is noticed
GATHER = 0.3  # seconds that news gather, so that a busy bot does not send one per message
RETRY = 3000  # milliseconds until a browser reconnects
MOST = 50  # concurrent streams
OF_ONE = 4
"""Per login: a browser opens six connections to a host, and a page that gets none hangs."""
NUMBER = re.compile(r"[0-9]{1,15}")
CONTENT = {"Content-Type": "text/event-stream; charset=utf-8", "X-Accel-Buffering": "no"}
STREAMS: Final = web.AppKey[Counter[str]]("streams")  # open streams by login name


async def stream_news(request: web.Request) -> web.StreamResponse:
    return await follow(request, request.app[SOURCES].feed)


async def follow(request: web.Request, feed: Feed) -> web.StreamResponse:
    """Send events after the browser's last one, until it leaves or its login ends."""
    streams, name = request.app[STREAMS], request[LOGIN].name
    if streams.total() >= MOST or streams[name] >= OF_ONE:
        raise RequestRefused(503, "streams")
    answer = web.StreamResponse(headers=CONTENT)
    streams[name] += 1
    try:
        async with asyncio.timeout(server.WRITE_WITHIN):
            await answer.prepare(request)
        await _send(request, answer, feed)
    except ConnectionError:
        pass  # the browser has left
    except TimeoutError:
        hang_up(request)  # it reads nothing
    finally:
        streams[name] -= 1
    return answer


async def _send(request: web.Request, answer: web.StreamResponse, feed: Feed) -> None:
    number = _first_number(request, feed.number)
    await answer.write(f"retry: {RETRY}\n\n".encode())
    quiet = 0.0
    while request[LOGIN] in request.app[LOGINS].open and request.transport is not None:
        news = await feed.after(number, within=LOOK)
        quiet += LOOK
        if not news and quiet < BEAT:
            continue
        quiet = 0.0
        lines = [
            f"id: {one.number}\nevent: news\ndata: {json.dumps({'name': one.name})}\n\n"
            for one in news
        ]
        async with asyncio.timeout(server.WRITE_WITHIN):
            await answer.write("".join(lines or [": \n\n"]).encode())
        if news:
            number = news[-1].number
            await request.app[SOURCES].clock.sleep(GATHER)


def _first_number(request: web.Request, latest: int) -> int:
    """The event to start after: the last one the browser received, or the page's own at loading."""
    had = request.headers.get("Last-Event-ID", request.query.get("after", ""))
    return min(int(had), latest) if NUMBER.fullmatch(had) else latest
