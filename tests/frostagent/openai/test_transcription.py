"""Speech to text, over a real HTTP server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from frostagent.models.openai.client import make_session
from frostagent.models.openai.transcription import MAX_ANSWER, Transcription
from frostagent.types.errors import Lack, MediaError
from frostagent.types.messages import Dictation, Usage
from tests.cases import each_case


@asynccontextmanager
async def listening(answer: web.Response | None, *, key: str = "k1") -> AsyncIterator[tuple[Transcription, list[str]]]:
    """A service that gives this answer, or none, and what it was asked."""
    asked: list[str] = []

    async def handle(request: web.Request) -> web.StreamResponse:
        asked.append(f"{request.path} {request.headers.get('Authorization', '-')} {(await request.read())!r}")
        if answer is None:
            await asyncio.Event().wait()
        assert answer is not None
        return answer

    app = web.Application()
    app.router.add_post("/{tail:.*}", handle)
    async with TestServer(app) as server, make_session() as session:
        base_url = str(server.make_url("/v1/"))
        yield Transcription(session=session, base_url=base_url, api_key=key, model="small", seconds=0.5), asked


async def test_the_words_in_a_sound_are_asked_for_as_openai_has_it() -> None:
    async with listening(web.json_response({"text": "你好"})) as (transcribe, asked):
        assert await transcribe(b"RIFF") == Dictation("你好")
        assert transcribe.name.startswith("small@127.0.0.1:")
    (request,) = asked
    assert request.startswith("/v1/audio/transcriptions Bearer k1 ")
    for part in ('name="file"; filename="voice.wav"', "RIFF", 'name="model"', "small"):
        assert part in request


async def test_without_a_key_none_is_sent() -> None:
    async with listening(web.json_response({"text": ""}), key="") as (transcribe, asked):
        assert await transcribe(b"RIFF") == Dictation("")
    assert asked[0].startswith("/v1/audio/transcriptions - ")


@each_case(
    ("told", "usage"),
    [
        ({"type": "tokens", "input_tokens": 14, "output_tokens": 3, "total_tokens": 17}, Usage(14, 3)),
        ({"type": "duration", "seconds": 9}, None),
        ({"input_tokens": -1, "output_tokens": 3}, None),
        ({"input_tokens": "14", "output_tokens": 3}, None),
        ([], None),
    ],
)
async def test_the_tokens_it_took_are_known_where_they_are_told(told: object, usage: Usage | None) -> None:
    async with listening(web.json_response({"text": "你好", "usage": told})) as (transcribe, _):
        assert (await transcribe(b"RIFF")).usage == usage


@pytest.mark.parametrize(
    ("answer", "took"),
    [
        (web.Response(status=401, text="secret words"), None),
        (web.Response(text="<html>secret words"), Usage()),
        (web.json_response(["secret words"]), Usage()),
        (web.json_response({"text": None}), Usage()),
        (web.Response(body=b'{"text": "' + b"x" * MAX_ANSWER + b'"}'), Usage()),
        (None, Usage()),
    ],
    ids=["refused", "no json", "a list", "null", "too much", "no answer"],
)
async def test_whatever_else_comes_is_nobody_listening_and_is_not_repeated(
    answer: web.Response | None, took: Usage | None
) -> None:
    async with listening(answer) as (transcribe, _):
        with pytest.raises(MediaError) as caught:
            await transcribe(b"RIFF")
    assert (caught.value.lack, caught.value.took) == (Lack.OUT_OF_REACH, took)
    assert "secret" not in str(caught.value)
