"""The page that gives the files that are offered, and says nothing of any other.

Apart from `file_offers`, which is loaded where nothing listens, because of `aiohttp.web` (2 MiB).
"""

from __future__ import annotations

import asyncio
from typing import Final

from aiohttp import web

from adapters.web.file_offers import FileOffers

PAGE: Final = "/media/{key}"
NOTHING: Final = "nothing is offered here\n"  # by which the doctor knows the page
STALLED: Final = 30.0  # seconds in which nothing could be written

# Whatever is in it, no browser takes it for a page, and nobody keeps it.
HEADERS: Final = {
    "Content-Type": "application/octet-stream",
    "Content-Disposition": "attachment",
    "Content-Security-Policy": "default-src 'none'; sandbox",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}


class FileRoute:
    """Answers GET and HEAD at PAGE, a block at a time: who reads slowly takes no memory."""

    def __init__(self, offers: FileOffers) -> None:
        self._offers = offers

    async def give(self, request: web.Request) -> web.StreamResponse:
        """The file of that key, to its end or until it is over."""
        offered = self._offers.find(request.match_info["key"])
        if offered is None:
            raise web.HTTPNotFound(text=NOTHING)
        offered.asked = True
        response = web.StreamResponse(headers=HEADERS)
        response.content_length = left = offered.size
        await response.prepare(request)
        if request.method == "HEAD":
            return response
        try:
            for block in offered.blocks():
                async with asyncio.timeout(STALLED):
                    await response.write(block)
                left -= len(block)
        except (TimeoutError, ConnectionError, ValueError):  # ValueError: it was no base64
            pass
        if left and request.transport is not None:
            # Half a file must not look like one, and who reads nothing more would hold it for ever.
            request.transport.abort()
        return response
