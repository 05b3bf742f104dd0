"""Received attachments in a model's form: images, documents, transcripts of voice messages."""

from __future__ import annotations

import asyncio
import base64
import binascii
import io
import wave
from collections import defaultdict
from collections.abc import Awaitable, Callable
from hashlib import sha256
from pathlib import Path
from typing import Final, TypeAlias

from cachetools import LRUCache, TTLCache
from msgspec.structs import replace

from bot.core.conversation import Conversation
from bot.core.documents import Document, UnreadableDocument
from bot.core.errors import TransportError
from bot.core.language import CATALOGUE, NotifyOwners, Phrase
from bot.core.ports import Documents, KeptFile, Seen, Web
from bot.core.segments import File, Picture, Record
from frostagent.types.errors import Lack, MediaError, ToolFailed
from frostagent.types.ports import Clock

FETCHING = 4.0  # seconds for a URL, so that time is left to ask the OneBot server
EXPIRED = frozenset({400, 403, 404, 410})  # statuses of a URL whose key has expired


class ReceivedFiles:
    """Fetches received files. `web` must be safe for any URL; `fetching` is in seconds."""

    def __init__(self, web: Web, *, max_bytes: int, fetching: float = FETCHING) -> None:
        self._web = web
        self._max_bytes = max_bytes
        self._fetching = fetching

    def check(self, size: int) -> None:
        """Raises MediaError if a known size is too large."""
        if size > self._max_bytes:
            raise MediaError(f"it has {size:,} bytes", Lack.TOO_LARGE)

    async def fetch_url(self, url: str) -> bytes:
        """Raises MediaError."""
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

    async def fetch(self, kept: KeptFile, *, tried: str = "") -> bytes:
        """Return the bytes of a file that the OneBot server offers as base64, path or URL, unless
        that URL was `tried`. Raises MediaError.
        """
        if kept.base64:
            return await asyncio.to_thread(self._plain, kept.base64)
        if kept.path and (data := await asyncio.to_thread(self._read, Path(kept.path))):
            return data
        if kept.url and kept.url != tried:
            return await self.fetch_url(kept.url)
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
        """The bytes of a local file; empty if it is missing (a path in another container)."""
        try:
            is_there = path.is_absolute() and path.is_file()
            return path.read_bytes() if is_there and path.stat().st_size <= self._max_bytes else b""
        except (OSError, ValueError):
            return b""


MAX_PICTURE_BYTES = 8 * 2**20
KEPT = 16 * 2**20  # base64 characters of cached images
MOST_FAILING = 6  # consecutive images
UNFETCHED: Final = Phrase(
    "账号 {account} 连续 {count} 张图片都取不下来，模型看不到图。多半是 OneBot 服务端拿不到"
    "图片的密钥（在它的日志里搜 rkey）：请更新并重启它。",
    "Pictures cannot be fetched (account {account}, {count} in a row): the model does not see"
    " them. Most likely the OneBot server has no key for them (look for rkey in its log):"
    " update it and restart it.",
)
CATALOGUE.register(__name__, globals())

Ask: TypeAlias = Callable[[int, str], Awaitable[KeptFile]]
"""Asks the OneBot server of an account for a file by name. Raises TransportError."""

Decode: TypeAlias = Callable[[bytes], Awaitable[bytes]]
"""Converts any image to a JPEG of moderate size in a sandbox. Raises MediaError."""


class PictureSight:
    """The `PictureReader` port. `web` must be safe for foreign URLs; `fetching` is in seconds."""

    def __init__(
        self,
        *,
        web: Web,
        ask: Ask,
        decode: Decode,
        max_bytes: int = MAX_PICTURE_BYTES,
        tell: NotifyOwners,
        fetching: float = FETCHING,
    ) -> None:
        self._received = ReceivedFiles(web, max_bytes=max_bytes, fetching=fetching)
        self._decode = decode
        self._ask = ask
        self._tell = tell
        # images since the last success, by account; at most as many as needed for an alert
        self._failed = defaultdict[int, set[str]](set)
        self._shown: LRUCache[bytes, str] = LRUCache(KEPT, getsizeof=len)

    async def see(self, account: int, image: Picture) -> Seen:
        """Return the image as a data URL. Raises MediaError if unavailable or undecodable."""
        self._received.check(image.size)
        why = MediaError("it has no address", Lack.OUT_OF_REACH)
        came = False
        try:
            if image.url:
                try:
                    data = await self._received.fetch_url(image.url)
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
        finally:  # also if the caller no longer waits
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
            self._tell(UNFETCHED.fill(account=account, count=MOST_FAILING))

    async def _kept(self, account: int, image: Picture) -> bytes:
        try:
            kept = await self._ask(account, image.file)
        except TransportError as error:
            raise MediaError(str(error), Lack.OUT_OF_REACH) from error
        return await self._received.fetch(kept, tried=image.url)

    async def _show(self, data: bytes) -> Seen:
        digest = sha256(data).digest()
        if (url := self._shown.get(digest)) is None:
            jpeg = await self._decode(data)
            url = "data:image/jpeg;base64," + base64.b64encode(jpeg).decode("ascii")
            if len(url) <= KEPT:
                self._shown[digest] = url
        return Seen(url)


MAX_FILE_BYTES: Final = 20 * 2**20
FETCHING_FILE: Final = 25.0  # seconds; 20 MB at 7 Mbit/s
KEPT_TEXT: Final = 2_000_000  # characters of documents that are kept
FRESH: Final = 600.0  # seconds

AskFile: TypeAlias = Callable[[Conversation, File], Awaitable[KeptFile]]
"""Asks the OneBot server for a file of a conversation. Raises TransportError."""


class ReceivedDocuments:
    """The `FileReader` port. `web` must be safe for foreign URLs and allow `MAX_FILE_BYTES`. A
    document is kept for ten minutes, because its parts are read one after the other.
    """

    def __init__(
        self,
        *,
        web: Web,
        ask: AskFile,
        documents: Documents,
        clock: Clock,
        fetching: float = FETCHING_FILE,
    ) -> None:
        self._received = ReceivedFiles(web, max_bytes=MAX_FILE_BYTES, fetching=fetching)
        self._ask = ask
        self._documents = documents
        self._kept: TTLCache[tuple[Conversation, File], Document] = TTLCache(
            KEPT_TEXT, FRESH, timer=clock.monotonic, getsizeof=_length
        )

    async def read(self, conversation: Conversation, file: File) -> Document:
        """See `FileReader.read`. Raises MediaError."""
        key = conversation, replace(file, handle="")
        if (kept := self._kept.get(key)) is not None:
            return kept
        self._received.check(file.size)
        data = await self._bytes(conversation, file)
        try:
            document = await self._documents.read(data)
        except UnreadableDocument as error:
            raise MediaError(str(error), error.lack) from error
        self._kept[key] = document
        return document

    async def _bytes(self, conversation: Conversation, file: File) -> bytes:
        if file.url:
            try:
                return await self._received.fetch_url(file.url)
            except MediaError as error:
                if error.lack is Lack.TOO_LARGE or not file.id:
                    raise
        try:
            kept = await self._ask(conversation, file)
        except TransportError as error:
            raise MediaError(str(error), Lack.EXPIRED) from error
        return await self._received.fetch(kept, tried=file.url)


def _length(document: Document) -> int:
    return 1000 + sum(map(len, document.paragraphs))


MAX_VOICE_BYTES = 5 * 2**20
MAX_SECONDS = 60.0
MAX_TRANSCRIPT = 2000  # characters; more than a minute of speech

Transcribe: TypeAlias = Callable[[bytes, float], Awaitable[str]]
"""Transcribes a wav of that many seconds. Raises MediaError."""


class VoiceEar:
    """The `VoiceListener` port; `ask` returns a voice message as wav."""

    def __init__(
        self, *, web: Web, ask: Ask, transcribe: Transcribe, fetching: float = FETCHING
    ) -> None:
        self._received = ReceivedFiles(web, max_bytes=MAX_VOICE_BYTES, fetching=fetching)
        self._ask = ask
        self._transcribe = transcribe

    async def hear(self, account: int, record: Record) -> str:
        """Return the transcript. Raises MediaError."""
        if record.seconds > MAX_SECONDS:
            raise MediaError(f"it is {record.seconds} s long", Lack.TOO_LARGE)
        try:
            kept = await self._ask(account, record.file)
        except TransportError as error:
            raise MediaError(str(error), Lack.EXPIRED) from error
        data = await self._received.fetch(kept)
        if (seconds := length_of(data)) > MAX_SECONDS:
            raise MediaError(f"it is {seconds:.0f} s long", Lack.TOO_LARGE)
        return " ".join((await self._transcribe(data, seconds)).split())[:MAX_TRANSCRIPT]


def length_of(data: bytes) -> float:
    """Seconds of a wav. Raises MediaError for anything else."""
    try:
        with wave.open(io.BytesIO(data)) as sound:
            frames, rate = sound.getnframes(), sound.getframerate()
    except (wave.Error, EOFError) as error:
        raise MediaError("it is no wav") from error
    return int(frames) / max(1, int(rate))
