"""A real model server on the loopback, which answers what a function of the request says."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

Body = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Vendor:
    """Where it listens, and what it was asked: the bodies and the keys, in order."""

    url: str
    bodies: list[Body] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)


def hello(_body: Body) -> Body:
    """A message in words."""
    return {"content": "hello"}


@asynccontextmanager
async def serving(answer: Callable[[Body], Body | int] = hello) -> AsyncIterator[Vendor]:
    """Serve while the block runs. `answer` gives the message of the answer, or the status of a failure."""
    bodies: list[Body] = []
    keys: list[str] = []

    async def handle(request: web.Request) -> web.Response:
        bodies.append(await request.json())
        keys.append(request.headers.get("Authorization", ""))
        message = answer(bodies[-1])
        if isinstance(message, int):
            return web.json_response({"error": {"message": "not now"}}, status=message, headers={"Retry-After": "0"})
        finish = "tool_calls" if message.get("tool_calls") else "stop"
        return web.json_response({"choices": [{"message": message, "finish_reason": finish}]})

    async with listening(handle) as url:
        yield Vendor(url, bodies, keys)


@asynccontextmanager
async def listening(handle: Callable[[web.Request], Awaitable[web.StreamResponse]]) -> AsyncIterator[str]:
    """A server while the block runs; what it is asked goes to `handle`. Its url."""
    application = web.Application()
    application.router.add_post("/{path:.*}", handle)
    runner = web.AppRunner(application)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()
