"""The `Sight` port: fetches the pictures people send and makes them what a model takes.

First by the picture's url; if that fails, from the OneBot server. The owners hear once if several
in a row cannot be fetched: servers need a key for pictures (rkey) that a service of others gives
them (NapCatQQ#2010). What unpacks it is a process
of its own (`adapters/media/decoding.py`), and is given equal bytes once: the same sticker comes
again and again.
"""

from __future__ import annotations

import base64
from collections import defaultdict
from collections.abc import Awaitable, Callable
from hashlib import sha256
from typing import Final, TypeAlias

from cachetools import LRUCache

from adapters.media.received import FETCHING, Received
from bot.domain.errors import Lack, MediaError, TransportError
from bot.domain.ports import KeptFile, Seen, Web
from bot.domain.segments import Picture
from bot.domain.tongue import Pair, Tell, filled

MAX_BYTES = 8 * 2**20
KEPT = 16 * 2**20  # characters of pictures that are kept for when they come again
MOST_FAILING = 6  # pictures in a row
UNFETCHED: Final[Pair] = (
    (
        "账号 {account} 连续 {count} 张图片都取不下来，模型看不到图。多半是 OneBot 服务端拿不到"
        "图片的密钥（在它的日志里搜 rkey）：请更新并重启它。"
    ),
    (
        "Pictures cannot be fetched (account {account}, {count} in a row): the model does not see"
        " them. Most likely the OneBot server has no key for them (look for rkey in its log):"
        " update it and restart it."
    ),
)

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
        tell: Tell,
        fetching: float = FETCHING,
    ) -> None:
        self._received = Received(web, max_bytes=max_bytes, fetching=fetching)
        self._decode = decode
        self._ask = ask
        self._tell = tell
        # pictures since the last that came, by account; as many as it takes to tell of them
        self._failed = defaultdict[int, set[str]](set)
        self._shown: LRUCache[bytes, str] = LRUCache(KEPT, getsizeof=len)

    async def see(self, account: int, image: Picture) -> Seen:
        """The picture as a data url. Raises MediaError: it cannot be had, or is none that can be
        shown.
        """
        self._received.check(image.size)
        why = MediaError("it has no address", Lack.OUT_OF_REACH)
        came = False
        try:
            if image.url:
                try:
                    data = await self._received.fetch(image.url)
                    came = True
                    return await self._show(data)
                except MediaError as error:
                    why = error
            if not image.file:
                raise why
            try:
                data = await self._kept(account, image)
                came = True
                return await self._show(data)
            except MediaError as error:
                lack = why.lack if image.url else error.lack
                raise MediaError(f"{why}; and at the OneBot server: {error}", lack) from error
        finally:  # also if it is waited for no longer
            self._count(account, image, came=came or why.lack is Lack.TOO_LARGE)

    def _count(self, account: int, image: Picture, *, came: bool) -> None:
        if came:
            self._failed.pop(account, None)
            return
        failed, picture = self._failed[account], image.file or image.url
        if picture in failed or len(failed) == MOST_FAILING:
            return
        failed.add(picture)
        if len(failed) == MOST_FAILING:
            self._tell(filled(UNFETCHED, account=account, count=MOST_FAILING))

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
