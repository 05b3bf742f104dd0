"""Speech to text, by any server that speaks `/audio/transcriptions`. One attempt, bounded."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import aiohttp
import orjson

from adapters.openai.endpoint import find_proxy, join_url
from bot.domain.errors import Lack, MediaError

SECONDS = 20.0
MAX_ANSWER = 2**20  # bytes


class Transcription:
    """Asks for the words in a sound. `api_key` may be empty; `seconds` are for one request."""

    def __init__(
        self,
        *,
        session: aiohttp.ClientSession,
        base_url: str,
        api_key: str,
        model: str,
        seconds: float = SECONDS,
    ) -> None:
        self._session = session
        self._url = join_url(base_url, path="/audio/transcriptions")
        self._proxy = find_proxy(self._url)
        self._headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._model = model
        self._seconds = seconds

    async def __call__(self, wav: bytes) -> str:
        """The words in a wav. Raises MediaError, which repeats nothing of what a server said."""
        form = aiohttp.FormData()
        form.add_field("file", wav, filename="voice.wav", content_type="audio/wav")
        form.add_field("model", self._model)
        form.add_field("response_format", "json")
        try:
            async with (
                asyncio.timeout(self._seconds),
                self._session.post(
                    self._url,
                    data=form,
                    headers=self._headers,
                    proxy=self._proxy,
                    allow_redirects=False,
                ) as response,
            ):
                body = b""
                async for chunk in response.content.iter_any():
                    body += chunk
                    if len(body) > MAX_ANSWER:
                        raise MediaError("STT_BASE_URL answers without end", Lack.OUT_OF_REACH)
        except (aiohttp.ClientError, OSError) as error:  # OSError holds TimeoutError
            why = f"nobody listened to it ({type(error).__name__})"
            raise MediaError(why, Lack.OUT_OF_REACH) from error
        if response.status != 200:
            raise MediaError(f"STT_BASE_URL answered {response.status}", Lack.OUT_OF_REACH)
        try:
            answer = orjson.loads(body)
        except orjson.JSONDecodeError:
            answer = None
        if not isinstance(answer, Mapping) or not isinstance(text := answer.get("text"), str):
            raise MediaError("STT_BASE_URL answered no text", Lack.OUT_OF_REACH)
        return text
