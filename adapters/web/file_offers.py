"""Files at an address of their own, for as long as somebody is to fetch them. Nothing is read from
a disk and nothing is listed: what a request names is a key here, or it is nothing.
"""

from __future__ import annotations

import asyncio
import base64
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from aiohttp import web

UNGUESSABLE: Final = 32  # bytes
BLOCK: Final = 65_536  # letters of base64; whole groups of four


class OfferedFile:
    """A file, as the base64 it is in memory anyway. `asked` is whether anybody came for it, `over`
    whether it is given no more.
    """

    def __init__(self, url: str, encoded: str) -> None:
        self.url = url
        self.asked = False
        self.over = False
        self._encoded = encoded

    @property
    def size(self) -> int:
        """How many bytes it has."""
        return len(self._encoded) // 4 * 3 - self._encoded[-2:].count("=")

    def blocks(self) -> Iterator[bytes]:
        """Its bytes; no more of them once it is over."""
        for start in range(0, len(self._encoded), BLOCK):
            if self.over:
                return
            yield base64.b64decode(self._encoded[start : start + BLOCK])


class FileOffers:
    """All that are offered now. `url` is where others reach the page that gives them."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._there: dict[str, OfferedFile] = {}

    @contextmanager
    def offer(self, encoded: str) -> Iterator[OfferedFile]:
        """Give this file to whoever knows its address, while the block runs."""
        key = secrets.token_urlsafe(UNGUESSABLE)
        offered = self._there[key] = OfferedFile(f"{self._url}/{key}", encoded)
        try:
            yield offered
        finally:
            del self._there[key]
            offered.over = True

    def find(self, key: str) -> OfferedFile | None:
        """The file of this key; None for any that is offered no more, or never was."""
        return self._there.get(key)


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
