"""The web server: health, readiness and metrics, and optionally files for OneBot servers. Nothing
here changes anything.
"""

from __future__ import annotations

import errno
import logging
import os
import socket
from collections.abc import Awaitable, Callable
from ipaddress import ip_address
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from adapters.web.file_offers import FileOffers
from adapters.web.file_route import PAGE, FileRoute
from adapters.web.readiness import Readiness
from bot.core.language import CATALOGUE, Phrase
from frostagent.types.errors import ConfigError, Problem

logger = logging.getLogger(__name__)


def _is_worth_a_line(record: logging.LogRecord) -> bool:
    """Skip malformed requests, which aiohttp answers with 400 but logs as errors."""
    return not (record.exc_info and isinstance(record.exc_info[1], HttpProcessingError))


logger.addFilter(_is_worth_a_line)

CLOSE_WITHIN = 1.0  # seconds; no answer takes longer
KEEP_ALIVE = 75.0  # seconds a scraper's connection stays open between requests
PROMETHEUS_TEXT = "text/plain; version=0.0.4; charset=utf-8"
NOT_OURS = Phrase("{host} 不是这台机器的地址", "{host} is not an address of this machine")
WRITE_HOST = Phrase(
    "写 127.0.0.1（只有本机）或 0.0.0.0（能连到它的都行）",
    "Write 127.0.0.1 (this machine only) or 0.0.0.0 (all that can reach it)",
)
CANNOT_LISTEN = Phrase("不能监听 {host}:{port}（{why}）", "cannot listen on {host}:{port} ({why})")
OTHER_PORT = Phrase(
    "停掉占用它的程序，换一个端口，或者设 WEB_PORT=0，不要 /healthz、/readyz 和 /metrics",
    "Stop what uses it, choose another port, or set WEB_PORT=0 to do without /healthz, /readyz and"
    " /metrics",
)
CATALOGUE.register(__name__, globals())

BY_NAME = (
    "/metrics of this machine alone is not shown under a public name (WEB_HOST): ask for it by its "
    "address, or as localhost\n"
)
PRIVATE_NAMES = ("localhost", ".localhost", ".internal", ".local")  # not registrable


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a server there."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def is_public_name(host: str) -> bool:
    """Whether the Host header names a host that a stranger may own: their page can point it at this
    machine and read what a browser gets from here (DNS rebinding).
    """
    try:
        name = (urlsplit(f"//{host}").hostname or "").rstrip(".")
    except ValueError:
        return True
    try:
        ip_address(name)
    except ValueError:
        return "." in name and not name.endswith(PRIVATE_NAMES)
    return False


class WebServer:
    """Listens while it is entered. `ready` and `metrics` are called on each request and must be
    fast.

    If it is not `required`, an unusable address is a warning and nothing is served. Files on
    `offers` are served under their secret URLs.
    """

    def __init__(
        self,
        *,
        host: str,
        port: int,
        ready: Callable[[], Readiness],
        metrics: Callable[[], Awaitable[bytes]],
        required: bool = True,
        offers: FileOffers | None = None,
    ) -> None:
        self._host = host
        self._port = port
        self._ready = ready
        self._metrics = metrics
        self._required = required
        app = web.Application()
        app.router.add_get("/healthz", self._healthz)
        app.router.add_get("/readyz", self._readyz)
        app.router.add_get("/metrics", self._show_metrics)
        if offers is not None:
            app.router.add_get(PAGE, FileRoute(offers).give)
        self._runner = web.AppRunner(
            app,
            access_log=None,
            logger=logger,
            handle_signals=False,
            keepalive_timeout=KEEP_ALIVE,
            shutdown_timeout=CLOSE_WITHIN,
        )

    @property
    def port(self) -> int:
        """The port it listens on, even for port 0; 0 while it does not listen."""
        return self._runner.addresses[0][1] if self._runner.addresses else 0

    async def __aenter__(self) -> Self:
        """Listen. Raises ConfigError if the address is unusable and required."""
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, self._host, self._port).start()
        except OSError as error:
            await self._runner.cleanup()
            problem = self._problem(error)
            if self._required:
                raise ConfigError(problem) from error
            logger.warning("nobody can watch the bot: %s", problem)
        else:
            host = f"[{self._host}]" if ":" in self._host else self._host
            logger.info("health and metrics on http://%s:%d", host, self.port)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._runner.cleanup()

    def _problem(self, error: OSError) -> Problem:
        # From Python 3.13 on, asyncio tries every address of a host, and reports no error number if
        # none is ours.
        if isinstance(error, socket.gaierror) or error.errno in {errno.EADDRNOTAVAIL, None}:
            return Problem("WEB_HOST", NOT_OURS.fill(host=self._host), WRITE_HOST.fill())
        reason = os.strerror(error.errno) if error.errno else str(error)
        what = CANNOT_LISTEN.fill(host=self._host, port=self._port, why=reason)
        return Problem("WEB_PORT", what, OTHER_PORT.fill())

    # --- requests
    # ----------------------------------------------------------------------------------

    async def _healthz(self, _request: web.Request) -> web.Response:
        """An answer proves that the event loop runs."""
        return _json({"status": "ok"})

    async def _readyz(self, _request: web.Request) -> web.Response:
        readiness = self._ready()
        return _json(readiness.to_json(), status=200 if readiness.ready else 503)

    async def _show_metrics(self, request: web.Request) -> web.Response:
        if is_loopback(self._host) and is_public_name(request.host):
            return web.Response(status=403, text=BY_NAME)
        return web.Response(body=await self._metrics(), headers={"Content-Type": PROMETHEUS_TEXT})


def _json(body: object, *, status: int = 200) -> web.Response:
    return web.json_response(body, status=status, headers={"Cache-Control": "no-store"})
