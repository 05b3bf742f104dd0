"""What the tests of the model client share: the recorded exchanges, and a model server that plays what it is told."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from frostagent.models.openai.client import make_session
from tests.frostagent.openai import corpus
from tests.frostagent.openai.sessions import Turn, read_sessions

Play = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True, slots=True)
class Exchange:
    """One answer and what must be read from it.

    Ours say which `error` a refusal is, and what a leaky answer is once it is `clean`; of the shared ones the tests
    that ask for it say so.
    """

    name: str
    status: int
    headers: Mapping[str, str]
    body: bytes
    expect: Mapping[str, Any]
    error: str = ""
    clean: Mapping[str, Any] | None = None


@pytest.fixture(scope="session")
def recorded() -> tuple[Exchange, ...]:
    """All exchanges with vendors: ours, and the shared ones where they are."""
    return tuple(map(_read_exchange, (*corpus.ours(), *corpus.shared())))


def _read_exchange(record: corpus.Record) -> Exchange:
    response = record["response"]
    return Exchange(
        record["id"],
        response["status"],
        response["headers"],
        response["body"].encode(),
        record["expect"],
        record.get("class", ""),
        record.get("clean"),
    )


@pytest.fixture(scope="session")
def quoted_errors() -> tuple[corpus.Record, ...]:
    """Error bodies, each with the kind it is: ours, and the shared ones where they are."""
    return (*corpus.refusals(), *corpus.shared_refusals())


@pytest.fixture(scope="session")
def sessions() -> list[list[Turn]]:
    """The conversations of more than one turn: ours, and the shared ones where they are."""
    return [*read_sessions(corpus.ours()), *read_sessions(corpus.shared())]


@dataclass(frozen=True, slots=True)
class Asked:
    """One request as the server got it."""

    path: str
    headers: Mapping[str, str]
    body: Mapping[str, Any]


@dataclass(slots=True)
class Vendor:
    """A real HTTP server on the loopback; `plays` are its answers in order, the last one for ever."""

    url: str = ""
    plays: list[Play] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)
    over: asyncio.Event = field(default_factory=asyncio.Event)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(
            Asked(request.path_qs, dict(request.headers), await request.json() if request.can_read_body else {})
        )
        play = self.plays.pop(0) if len(self.plays) > 1 else self.plays[0]
        return await play(request)

    def say(self, *pieces: bytes, status: int = 200, headers: Mapping[str, str] | None = None) -> None:
        """Answer with these pieces and an orderly end."""

        async def play(request: web.Request) -> web.StreamResponse:
            response = web.StreamResponse(status=status, headers=headers or {"Content-Type": "text/event-stream"})
            await response.prepare(request)
            for piece in pieces:
                await response.write(piece)
            return response

        self.plays.append(play)

    def stall(self, *pieces: bytes) -> None:
        """Answer with these pieces and then neither more nor an end."""

        async def play(request: web.Request) -> web.StreamResponse:
            response = web.StreamResponse()
            await response.prepare(request)
            for piece in pieces:
                await response.write(piece)
            await self.over.wait()
            return response

        self.plays.append(play)

    def hum(self, *pieces: bytes, every: float = 0.02, sign: bytes = b": keep-alive\n\n") -> None:
        """Answer with these pieces and then with a sign of life again and again, until nobody listens."""

        async def play(request: web.Request) -> web.StreamResponse:
            response = web.StreamResponse()
            await response.prepare(request)
            for piece in pieces:
                await response.write(piece)
            with contextlib.suppress(ConnectionError):
                while not self.over.is_set():
                    await response.write(sign)
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(every):
                            await self.over.wait()
            return response

        self.plays.append(play)

    def cut(self, *pieces: bytes) -> None:
        """Answer with these pieces and then break the connection."""

        async def play(request: web.Request) -> web.StreamResponse:
            response = web.StreamResponse()
            await response.prepare(request)
            for piece in pieces:
                await response.write(piece)
            assert request.transport is not None
            request.transport.close()
            return response

        self.plays.append(play)


@pytest.fixture
async def vendor() -> AsyncIterator[Vendor]:
    """A model server that answers nothing yet."""
    vendor = Vendor()
    application = web.Application(client_max_size=2**26)
    application.router.add_post("/{path:.*}", vendor.handle)
    application.router.add_get("/{path:.*}", vendor.handle)
    runner = web.AppRunner(application, shutdown_timeout=1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    vendor.url = f"http://{host}:{port}/v1"
    yield vendor
    vendor.over.set()
    await runner.cleanup()


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    """The session the models of a test share."""
    async with make_session() as session:
        yield session
