"""The console's listener, on its own address. The application loads at the first request.

Connections have deadlines, and `HEADERS` are sent with every answer, including aiohttp's own to
unreadable requests.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import socket
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Final, Self

from aiohttp import web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.hdrs import CACHE_CONTROL, EXPECT
from aiohttp.http import RawRequestMessage
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.streams import StreamReader

from adapters.console.http import MAX_FORM, Origins, hang_up
from adapters.console.logins import Logins
from bot.core.language import CATALOGUE, Phrase
from frostagent.types.errors import ConfigError, Problem

logger = logging.getLogger(__name__)

HEAD_WITHIN = 10.0  # seconds from the connection to its first request
WRITE_WITHIN = 20.0  # seconds for a client to read an answer or event
KEEP_ALIVE = 30.0  # seconds between two requests, including the second one's head
CLOSE_WITHIN = 1.0  # seconds; live streams end with the listener
HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; "
        "require-trusted-types-for 'script'; trusted-types 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",  # no-referrer gives forms over plain http the origin "null"
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Frame-Options": "DENY",
}

IS_EXPECTING: Final = web.RequestKey("is_expecting", bool)  # has the header `Expect`

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


NOT_OURS: Final = Phrase("{host} 不是这台机器的地址", "{host} is not an address of this machine")
WRITE_HOST: Final = Phrase(
    "写 127.0.0.1（只有本机），或者不写", "Write 127.0.0.1 (this machine only), or leave it out"
)
CANNOT_LISTEN: Final = Phrase(
    "不能监听 {host}:{port}（{why}）", "cannot listen on {host}:{port} ({why})"
)
OTHER_PORT: Final = Phrase(
    "停掉占用它的程序，或者换一个端口", "Stop what uses it, or choose another port"
)
CATALOGUE.register(__name__, globals())


def _is_worth_logging(record: logging.LogRecord) -> bool:
    """Skip malformed requests, which aiohttp answers with 400 but logs as errors."""
    return not (record.exc_info and isinstance(record.exc_info[1], HttpProcessingError))


logger.addFilter(_is_worth_logging)


class Console:
    """Listens while it is entered. `load` builds the application at the first request."""

    def __init__(
        self,
        *,
        host: str,
        port: int,
        origin: str,
        logins: Logins,
        load: Callable[[Logins, Origins], web.Application],
    ) -> None:
        """`origin` is the address for browsers; empty: this machine only."""
        self._host = host
        self._port = port
        self._origin = origin
        self._load = load
        self.logins = logins
        self._runner: web.ServerRunner | None = None
        self._app_runner: web.AppRunner | None = None
        self._handle: Handler | None = None
        self._loading = asyncio.Lock()
        self.app: web.Application | None = None

    @property
    def port(self) -> int:
        """The port it listens on, even for port 0; 0 while it does not listen."""
        return self._runner.addresses[0][1] if self._runner and self._runner.addresses else 0

    @property
    def origins(self) -> Origins:
        return Origins(self._origin, port=self.port)

    def link(self) -> str:
        """A single-use login link, valid for five minutes. Browsers never send what follows `#`."""
        return f"{self.origins.first.url('/login')}#{self.logins.invite()}"

    async def __aenter__(self) -> Self:
        """Listen. Raises ConfigError if the address cannot be used."""
        self._runner = runner = web.ServerRunner(
            Listener(self._answer), shutdown_timeout=CLOSE_WITHIN
        )
        await runner.setup()
        try:
            await web.TCPSite(runner, self._host, self._port).start()
        except OSError as error:
            await runner.cleanup()
            raise ConfigError(self._problem(error)) from error
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
        if self._app_runner is not None:
            await self._app_runner.cleanup()

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        async with self._loading:
            if self._handle is None:
                self._handle = await self._load_app()
        return await self._handle(request)

    async def _load_app(self) -> Handler:
        """Start the application without a listener: ours passes it every request."""
        self.app = self._load(self.logins, self.origins)
        self._app_runner = runner = web.AppRunner(self.app)
        await runner.setup()
        if (server := runner.server) is None:
            raise RuntimeError("the application was set up without a server")
        return server.request_handler

    def _problem(self, error: OSError) -> Problem:
        if isinstance(error, socket.gaierror) or error.errno in {errno.EADDRNOTAVAIL, None}:
            return Problem("CONSOLE_HOST", NOT_OURS.fill(host=self._host), WRITE_HOST.fill())
        reason = os.strerror(error.errno) if error.errno else str(error)
        what = CANNOT_LISTEN.fill(host=self._host, port=self._port, why=reason)
        return Problem("CONSOLE_PORT", what, OTHER_PORT.fill())


class Listener(web.Server):
    """Disconnects clients that send no request, or do not read the answer of `handler`."""

    def __init__(self, handler: Handler) -> None:
        super().__init__(
            self._answer,
            request_factory=self._build_request,
            access_log=None,
            logger=logger,
            keepalive_timeout=KEEP_ALIVE,
            auto_decompress=False,
        )
        self._handler = handler
        self._silent: dict[web.RequestHandler, asyncio.TimerHandle] = {}

    def connection_made(self, handler: web.RequestHandler, transport: asyncio.Transport) -> None:
        super().connection_made(handler, transport)
        timer = asyncio.get_running_loop().call_later(HEAD_WITHIN, transport.abort)
        self._silent[handler] = timer

    def connection_lost(
        self, handler: web.RequestHandler, exc: BaseException | None = None
    ) -> None:
        super().connection_lost(handler, exc)
        self._stop_timer(handler)

    def _stop_timer(self, handler: web.RequestHandler) -> None:
        if timer := self._silent.pop(handler, None):
            timer.cancel()

    def _build_request(
        self,
        message: RawRequestMessage,
        payload: StreamReader,
        protocol: web.RequestHandler,
        writer: AbstractStreamWriter,
        task: asyncio.Task[None],
    ) -> web.BaseRequest:
        self._stop_timer(protocol)
        is_expecting = EXPECT in message.headers
        if is_expecting:  # aiohttp would answer it before the first middleware
            headers = message.headers.copy()
            headers.popall(EXPECT)
            message = message._replace(headers=type(message.headers)(headers))
        loop = asyncio.get_running_loop()
        request = _Request(message, payload, protocol, writer, task, loop, client_max_size=MAX_FORM)
        request[IS_EXPECTING] = is_expecting
        return request

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        answer = await self._handler(request)
        try:
            async with asyncio.timeout(WRITE_WITHIN):
                await answer.prepare(request)
                await answer.write_eof()
        except ConnectionError:
            pass  # the client has left
        except TimeoutError:
            hang_up(request)
        return answer


class _Request(web.Request):
    """A request. Unreadable ones have this type too, so that their answers get the headers."""

    async def _prepare_hook(self, response: web.StreamResponse) -> None:
        kept = response.headers.get(CACHE_CONTROL)
        response.headers.update(HEADERS)
        if kept is not None:  # an answer may set its own cache lifetime
            response.headers[CACHE_CONTROL] = kept
