"""The `Sight` port: fetches the pictures people send and makes them what a model takes.

First by the picture's url, which needs no login but expires after about two hours; where that
fails, from the OneBot server, which gives the content, a fresh url, or a path that only means
something where both see the same folder (onebot.md 4.5). All of it is bounded; what unpacks
it is a process of its own (`adapters/media/decoding.py`).
"""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeAlias

from bot.domain.errors import MediaError, ToolFailed, TransportError
from bot.domain.ports import KeptFile, Web
from bot.domain.segments import Image

MAX_BYTES = 8 * 2**20
FETCHING = 4.0  # seconds for a url, so that some are left for the OneBot server

Ask: TypeAlias = Callable[[int, str], Awaitable[KeptFile]]
"""Asks the OneBot server of an account for a picture by its name. Raises TransportError."""

Decode: TypeAlias = Callable[[bytes], Awaitable[bytes]]
"""Makes any picture a JPEG of moderate size, without harm to us. Raises MediaError."""


class PictureSight:
    """Fits `bot.domain.ports.Sight`. `web` must be one for urls that others name; `fetching` is in
    seconds, for one.
    """

    def __init__(
        self,
        *,
        web: Web,
        ask: Ask,
        decode: Decode,
        max_bytes: int = MAX_BYTES,
        fetching: float = FETCHING,
    ) -> None:
        self._web = web
        self._decode = decode
        self._ask = ask
        self._fetching = fetching
        self._max_bytes = max_bytes

    async def see(self, account: int, image: Image) -> str:
        """The picture as a data url. Raises MediaError: it cannot be had, or is none that can be
        shown.
        """
        if image.size > self._max_bytes:
            raise MediaError(f"it has {image.size:,} bytes")
        why = "it has no address"
        if image.url:
            try:
                return await self._shown(await self._fetch(image.url))
            except MediaError as error:
                why = str(error)
        if not image.file:
            raise MediaError(why)
        try:
            return await self._shown(await self._kept(account, image))
        except MediaError as error:
            raise MediaError(f"{why}; and at the OneBot server: {error}") from error

    async def _fetch(self, url: str) -> bytes:
        try:
            async with asyncio.timeout(self._fetching):
                response = await self._web.get(url)
        except ToolFailed as error:
            raise MediaError(str(error)) from error
        except TimeoutError as error:
            raise MediaError(f"its server took longer than {self._fetching:g} s") from error
        if len(response.body) > self._max_bytes:
            raise MediaError(f"it has more than {self._max_bytes:,} bytes")
        if response.status != 200:
            raise MediaError(f"its server answered {response.status}")
        return response.body

    async def _kept(self, account: int, image: Image) -> bytes:
        """The OneBot server's form of it; the cheapest way first."""
        try:
            kept = await self._ask(account, image.file)
        except TransportError as error:
            raise MediaError(str(error)) from error
        if kept.base64:
            return await asyncio.to_thread(self._plain, kept.base64)
        if kept.path and (data := await asyncio.to_thread(self._read, Path(kept.path))):
            return data
        if kept.url and kept.url != image.url:
            return await self._fetch(kept.url)
        raise MediaError("it gives nothing that can be reached from here")

    def _plain(self, text: str) -> bytes:
        if len(text) > self._max_bytes * 4 / 3 + 4:
            raise MediaError(f"it has more than {self._max_bytes:,} bytes")
        try:
            return base64.b64decode(text)
        except (binascii.Error, ValueError) as error:
            raise MediaError("its base64 cannot be read") from error

    def _read(self, path: Path) -> bytes:
        """What is there, nothing where we see no such file: it is a path of another container
        then.
        """
        try:
            if (
                not path.is_absolute()
                or not path.is_file()
                or path.stat().st_size > self._max_bytes
            ):
                return b""
            return path.read_bytes()
        except (OSError, ValueError):
            return b""

    async def _shown(self, data: bytes) -> str:
        jpeg = await self._decode(data)
        return "data:image/jpeg;base64," + base64.b64encode(jpeg).decode("ascii")
