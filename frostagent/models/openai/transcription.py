"""Speech to text with a server that implements `/audio/transcriptions`. One attempt."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import aiohttp
import orjson

from frostagent.models.openai.endpoint import find_proxy, join_url
from frostagent.models.openai.history import Origin
from frostagent.types.errors import Lack, MediaError
from frostagent.types.messages import Dictation, Usage

SECONDS = 20.0
MAX_ANSWER = 2**20  # bytes
NOT_TOLD = Usage()


class Transcription:
    """Transcribes audio. `api_key` may be empty; `seconds` limits one request."""

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
        self.name = Origin(endpoint=self._url.host_port_subcomponent or "", model=model).name
        self._seconds = seconds

    async def __call__(self, wav: bytes) -> Dictation:
        """Transcribe a WAV file. Raises MediaError, which never quotes the server."""
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
                        raise _unheard("STT_BASE_URL answers without end", took=NOT_TOLD)
        except (aiohttp.ClientError, OSError) as error:  # OSError includes TimeoutError
            why = f"nobody listened to it ({type(error).__name__})"
            took = NOT_TOLD if isinstance(error, TimeoutError) else None
            raise _unheard(why, took=took) from error
        if response.status != 200:
            raise _unheard(f"STT_BASE_URL answered {response.status}")
        try:
            answer = orjson.loads(body)
        except orjson.JSONDecodeError:
            answer = None
        if not isinstance(answer, Mapping) or not isinstance(text := answer.get("text"), str):
            raise _unheard("STT_BASE_URL answered no text", took=NOT_TOLD)
        return Dictation(text, _usage_in(answer))


def _unheard(why: str, *, took: Usage | None = None) -> MediaError:
    return MediaError(why, Lack.OUT_OF_REACH, took=took)


def _usage_in(answer: Mapping[str, object]) -> Usage | None:
    """The tokens used; None if not reported, as by models billed per second."""
    match answer.get("usage"):
        case {"input_tokens": int(heard), "output_tokens": int(said)} if heard > 0 <= said:
            return Usage(heard, said)
        case _:
            return None
