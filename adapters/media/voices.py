"""The `Ear` port: voice messages as the words in them, by whoever speaks OpenAI's
`/audio/transcriptions`.

The OneBot server makes a wav of them: what QQ keeps is silk, which nobody else reads.
"""

from __future__ import annotations

import io
import wave
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from adapters.media.received import FETCHING, Received
from adapters.media.sight import Ask
from bot.domain.errors import Lack, MediaError, TransportError
from bot.domain.ports import Web
from bot.domain.segments import Record

MAX_BYTES = 5 * 2**20
MAX_SECONDS = 60.0
MAX_TEXT = 2000  # characters; nobody speaks more in a minute

Transcribe: TypeAlias = Callable[[bytes, float], Awaitable[str]]
"""The words in a wav that lasts so many seconds. Raises MediaError."""


class VoiceEar:
    """Fits `bot.domain.ports.Ear`; `ask` asks for a voice as wav."""

    def __init__(
        self, *, web: Web, ask: Ask, transcribe: Transcribe, fetching: float = FETCHING
    ) -> None:
        self._received = Received(web, max_bytes=MAX_BYTES, fetching=fetching)
        self._ask = ask
        self._transcribe = transcribe

    async def hear(self, account: int, record: Record) -> str:
        """The words in it. Raises MediaError."""
        if record.seconds > MAX_SECONDS:
            raise MediaError(f"it is {record.seconds} s long", Lack.TOO_LARGE)
        try:
            kept = await self._ask(account, record.file)
        except TransportError as error:
            raise MediaError(str(error), Lack.EXPIRED) from error
        data = await self._received.take(kept)
        if (seconds := length_of(data)) > MAX_SECONDS:
            raise MediaError(f"it is {seconds:.0f} s long", Lack.TOO_LARGE)
        return " ".join((await self._transcribe(data, seconds)).split())[:MAX_TEXT]


def length_of(data: bytes) -> float:
    """The seconds of a wav. Raises MediaError for what is none."""
    try:
        with wave.open(io.BytesIO(data)) as sound:
            frames, rate = sound.getnframes(), sound.getframerate()
    except (wave.Error, EOFError) as error:
        raise MediaError("it is no wav") from error
    return int(frames) / max(1, int(rate))
