"""HTTP of the console: nobody holds it by being slow, and no answer is without our headers, not
even those that aiohttp gives by itself.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from aiohttp import web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.hdrs import CACHE_CONTROL
from aiohttp.http import RawRequestMessage
from aiohttp.streams import StreamReader

HEAD = 10.0  # seconds that a connection has until its first request is there
WRITE = 20.0  # seconds that a reader has to take an answer, or an event
KEEP_ALIVE = 30.0  # seconds between two requests, the head of the second one included
LARGEST: Final = 64 * 1024  # bytes of a form

Answering = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


class Listener(web.Server):
    """Answers requests by `answering`, each answer with `headers`. How long a browser may keep it
    an answer may say itself.
    """

    def __init__(
        self, answering: Answering, *, headers: Mapping[str, str], logger: logging.Logger
    ) -> None:
        super().__init__(
            self._answer,
            request_factory=self._asked,
            access_log=None,
            logger=logger,
            keepalive_timeout=KEEP_ALIVE,
            auto_decompress=False,
        )
        self._answering = answering
        self._headers = headers
        self._silent: dict[web.RequestHandler, asyncio.TimerHandle] = {}

    def connection_made(self, handler: web.RequestHandler, transport: asyncio.Transport) -> None:
        """Somebody connected, and has so long to ask."""
        super().connection_made(handler, transport)
        timer = asyncio.get_running_loop().call_later(HEAD, transport.abort)
        self._silent[handler] = timer

    def connection_lost(
        self, handler: web.RequestHandler, exc: BaseException | None = None
    ) -> None:
        """Somebody left."""
        super().connection_lost(handler, exc)
        self._hear(handler)

    def _hear(self, handler: web.RequestHandler) -> None:
        if timer := self._silent.pop(handler, None):
            timer.cancel()

    def _asked(
        self,
        message: RawRequestMessage,
        payload: StreamReader,
        protocol: web.RequestHandler,
        writer: AbstractStreamWriter,
        task: asyncio.Task[None],
    ) -> web.BaseRequest:
        self._hear(protocol)
        loop = asyncio.get_running_loop()
        asked = _Asked(message, payload, protocol, writer, task, loop, client_max_size=LARGEST)
        asked.ours = self._headers
        return asked

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        answer = await self._answering(request)
        try:
            async with asyncio.timeout(WRITE):
                await answer.prepare(request)
                await answer.write_eof()
        except ConnectionError:
            pass  # whoever asked has left
        except TimeoutError:
            hang_up(request)
        return answer


class _Asked(web.BaseRequest):
    """A request; also one that cannot be read has this kind, and gets the headers."""

    ours: Mapping[str, str]

    async def _prepare_hook(self, response: web.StreamResponse) -> None:
        kept = response.headers.get(CACHE_CONTROL)
        response.headers.update(self.ours)
        if kept is not None:
            response.headers[CACHE_CONTROL] = kept


def hang_up(request: web.BaseRequest) -> None:
    """End a connection whose other end takes nothing; what was not taken is dropped."""
    if request.transport is not None:
        request.transport.abort()
