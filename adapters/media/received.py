"""The bytes of what people send: by its url, which needs no login but expires after two hours,
or from the OneBot server, which gives the content, a fresh url, or a path that only means something
where both see the same folder (onebot.md 4.5). All of it is bounded.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
from pathlib import Path

from bot.domain.errors import Lack, MediaError, ToolFailed
from bot.domain.ports import KeptFile, Web

FETCHING = 4.0  # seconds for a url, so that some are left for the OneBot server
EXPIRED = frozenset({400, 403, 404, 410})  # what is answered once a key in the url is too old


class Received:
    """Gets bytes. `web` must be one for urls that others name; `fetching` is in seconds."""

    def __init__(self, web: Web, *, max_bytes: int, fetching: float = FETCHING) -> None:
        self._web = web
        self._max_bytes = max_bytes
        self._fetching = fetching

    def check(self, size: int) -> None:
        """Raises MediaError for what is known to be too large."""
        if size > self._max_bytes:
            raise MediaError(f"it has {size:,} bytes", Lack.TOO_LARGE)

    async def fetch(self, url: str) -> bytes:
        """The bytes behind a url. Raises MediaError."""
        try:
            async with asyncio.timeout(self._fetching):
                response = await self._web.get(url)
        except ToolFailed as error:
            raise MediaError(str(error), Lack.OUT_OF_REACH) from error
        except TimeoutError as error:
            why = f"its server took longer than {self._fetching:g} s"
            raise MediaError(why, Lack.OUT_OF_REACH) from error
        self._bound(len(response.body))
        if response.status != 200:
            lack = Lack.EXPIRED if response.status in EXPIRED else Lack.OUT_OF_REACH
            raise MediaError(f"its server answered {response.status}", lack)
        return response.body

    async def take(self, kept: KeptFile, *, tried: str = "") -> bytes:
        """The OneBot server's form of it, the cheapest way first; not by the url that was tried
        already. Raises MediaError.
        """
        if kept.base64:
            return await asyncio.to_thread(self._plain, kept.base64)
        if kept.path and (data := await asyncio.to_thread(self._read, Path(kept.path))):
            return data
        if kept.url and kept.url != tried:
            return await self.fetch(kept.url)
        raise MediaError("it gives nothing that can be reached from here", Lack.OUT_OF_REACH)

    def _bound(self, size: int) -> None:
        if size > self._max_bytes:
            raise MediaError(f"it has more than {self._max_bytes:,} bytes", Lack.TOO_LARGE)

    def _plain(self, text: str) -> bytes:
        self._bound(len(text) * 3 // 4 - 3)
        try:
            data = base64.b64decode(text)
        except (binascii.Error, ValueError) as error:
            raise MediaError("its base64 cannot be read") from error
        self._bound(len(data))
        return data

    def _read(self, path: Path) -> bytes:
        """The bytes there, none where we see no such file: it is a path of another container
        then.
        """
        try:
            is_there = path.is_absolute() and path.is_file()
            return path.read_bytes() if is_there and path.stat().st_size <= self._max_bytes else b""
        except (OSError, ValueError):
            return b""
