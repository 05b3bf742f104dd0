"""The page that serves offered files, and reveals nothing about others.

Separate from `file_offers`, which is also loaded without a listener, because of `aiohttp.web` (2
MiB).
"""

from __future__ import annotations

import asyncio
from typing import Final

from aiohttp import web

from adapters.web.file_offers import FileOffers

PAGE: Final = "/media/{key}"
NOTHING: Final = "nothing is offered here\n"  # by which the doctor recognizes the page
STALLED: Final = 30.0  # seconds without a successful write

# Whatever the content, no browser treats it as a page or caches it.
HEADERS: Final = {
    "Content-Type": "application/octet-stream",
    "Content-Disposition": "attachment",
    "Content-Security-Policy": "default-src 'none'; sandbox",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}


class FileRoute:
    """Answers GET and HEAD at PAGE, a block at a time, so that a slow reader takes no memory."""

    def __init__(self, offers: FileOffers) -> None:
        self._offers = offers

    async def give(self, request: web.Request) -> web.StreamResponse:
        """Send the file of that key, to its end or until the offer is over."""
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
        except (TimeoutError, ConnectionError, ValueError):  # ValueError: invalid base64
            pass
        if left and request.transport is not None:
            # A partial file must not look complete, and a stalled reader would hold it for ever.
            request.transport.abort()
        return response
