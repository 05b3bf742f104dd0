"""The `Reader` port: the text of the files people send, in the encodings text comes in."""

from __future__ import annotations

import codecs
import re
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from adapters.media.received import FETCHING, Received
from bot.domain.errors import Lack, MediaError, TransportError
from bot.domain.events import Conversation
from bot.domain.ports import KeptFile, Web
from bot.domain.segments import File

MAX_BYTES = 200 * 2**10
MAX_TEXT = 8000  # characters
CUT = "…(共 {total} 字)"
MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
BINARY = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f]")  # no text has these, but for colours (1b)

AskFile: TypeAlias = Callable[[Conversation, File], Awaitable[KeptFile]]
"""Asks the OneBot server where a file of a conversation is. Raises TransportError."""


class TextReader:
    """Fits `bot.domain.ports.Reader`. `web` must be one for urls that others name."""

    def __init__(self, *, web: Web, ask: AskFile, fetching: float = FETCHING) -> None:
        self._received = Received(web, max_bytes=MAX_BYTES, fetching=fetching)
        self._ask = ask

    async def read(self, conversation: Conversation, file: File) -> str:
        """Its text, of a long one the beginning. Raises MediaError."""
        self._received.check(file.size)
        text = as_text(await self._bytes(conversation, file))
        return text if len(text) <= MAX_TEXT else text[:MAX_TEXT] + CUT.format(total=len(text))

    async def _bytes(self, conversation: Conversation, file: File) -> bytes:
        if file.url:
            try:
                return await self._received.fetch(file.url)
            except MediaError as error:
                if error.lack is Lack.TOO_LARGE or not file.id:
                    raise
        try:
            kept = await self._ask(conversation, file)
        except TransportError as error:
            raise MediaError(str(error), Lack.EXPIRED) from error
        return await self._received.take(kept, tried=file.url)


def as_text(data: bytes) -> str:
    """The text in these bytes: as their mark says, else UTF-8, else GB 18030. Raises MediaError."""
    marked = [encoding for mark, encoding in MARKS if data.startswith(mark)]
    for encoding in marked or ["utf-8", "gb18030"]:
        try:
            text = data.decode(encoding)
        except UnicodeDecodeError:
            continue
        if not BINARY.search(text):
            return text
    raise MediaError("it is no text", Lack.NO_TEXT)
