"""The `Sight` port: fetches the pictures people send and makes them what a model takes.

First by the picture's url; where that fails, from the OneBot server. What unpacks it is a process
of its own (`adapters/media/decoding.py`), and is given equal bytes once: the same sticker comes
again and again.
"""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable
from hashlib import sha256
from typing import TypeAlias

from cachetools import LRUCache

from adapters.media.received import FETCHING, Received
from bot.domain.errors import Lack, MediaError, TransportError
from bot.domain.ports import KeptFile, Seen, Web
from bot.domain.segments import Picture

MAX_BYTES = 8 * 2**20
KEPT = 16 * 2**20  # characters of pictures that are kept for when they come again

Ask: TypeAlias = Callable[[int, str], Awaitable[KeptFile]]
"""Asks the OneBot server of an account for a file by its name. Raises TransportError."""

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
        self._received = Received(web, max_bytes=max_bytes, fetching=fetching)
        self._decode = decode
        self._ask = ask
        self._shown: LRUCache[bytes, str] = LRUCache(KEPT, getsizeof=len)

    async def see(self, account: int, image: Picture) -> Seen:
        """The picture as a data url. Raises MediaError: it cannot be had, or is none that can be
        shown.
        """
        self._received.check(image.size)
        why = MediaError("it has no address", Lack.OUT_OF_REACH)
        if image.url:
            try:
                return await self._show(await self._received.fetch(image.url))
            except MediaError as error:
                why = error
        if not image.file:
            raise why
        try:
            return await self._show(await self._kept(account, image))
        except MediaError as error:
            lack = why.lack if image.url else error.lack
            raise MediaError(f"{why}; and at the OneBot server: {error}", lack) from error

    async def _kept(self, account: int, image: Picture) -> bytes:
        try:
            kept = await self._ask(account, image.file)
        except TransportError as error:
            raise MediaError(str(error), Lack.OUT_OF_REACH) from error
        return await self._received.take(kept, tried=image.url)

    async def _show(self, data: bytes) -> Seen:
        digest = sha256(data).digest()
        if (url := self._shown.get(digest)) is None:
            jpeg = await self._decode(data)
            url = "data:image/jpeg;base64," + base64.b64encode(jpeg).decode("ascii")
            if len(url) <= KEPT:
                self._shown[digest] = url
        return Seen(url)
