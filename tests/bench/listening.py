"""Stands between a bot and its model, passes everything on as it comes, and keeps what was asked and answered."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import aiohttp
from aiohttp import web

Json: TypeAlias = dict[str, Any]

ANSWERED_WITHIN = 600.0  # seconds: small machines are slow


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request as its messages, and the words of the answer as the model gave them."""

    messages: list[Json]
    said: str


@dataclass(slots=True)
class Listener:
    """Where the bot finds its model, and all exchanges so far, in order."""

    url: str = ""
    exchanges: list[Exchange] = field(default_factory=list)


@asynccontextmanager
async def listening(upstream: str) -> AsyncIterator[Listener]:
    """A listener before the OpenAI-compatible endpoint with this base url, while the block runs."""
    listener = Listener()
    timeout = aiohttp.ClientTimeout(total=ANSWERED_WITHIN)
    fresh = aiohttp.TCPConnector(force_close=True)  # small servers drop idle connections without a word
    async with aiohttp.ClientSession(timeout=timeout, connector=fresh) as session:

        async def pass_on(request: web.Request) -> web.StreamResponse:
            body = await request.read()
            headers = {
                name: request.headers[name] for name in ("Authorization", "Content-Type") if name in request.headers
            }
            url = f"{upstream.rstrip('/')}/{request.match_info['path']}"
            async with session.request(request.method, url, data=body or None, headers=headers) as answer:
                response = web.StreamResponse(status=answer.status, headers={"Content-Type": answer.content_type})
                await response.prepare(request)
                whole = bytearray()
                async for piece in answer.content.iter_any():
                    whole += piece
                    await response.write(piece)
            if body and answer.status == 200:
                listener.exchanges.append(Exchange(json.loads(body)["messages"], words_of(bytes(whole))))
            await response.write_eof()
            return response

        app = web.Application(client_max_size=64 << 20)
        app.router.add_route("*", "/v1/{path:.*}", pass_on)
        runner = web.AppRunner(app)
        await runner.setup()
        try:
            site = web.TCPSite(runner, "127.0.0.1", 0)
            await site.start()
            listener.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
            yield listener
        finally:
            await runner.cleanup()


def words_of(body: bytes) -> str:
    """The words of an answer, whole or as a stream; none of one that broke off before it began."""
    text = body.decode("utf-8", "replace")
    if not text.strip():
        return ""
    if not text.lstrip().startswith("data:"):
        return text_of(json.loads(text), "message")
    events = (line.removeprefix("data:").strip() for line in text.splitlines() if line.startswith("data:"))
    return "".join(text_of(json.loads(event), "delta") for event in events if event and event != "[DONE]")


def text_of(answer: Json, part: str) -> str:
    choices = answer.get("choices") or [{}]
    return choices[0].get(part, {}).get("content") or ""
