"""The console's listener, on an address of its own. Its pages are loaded at the first request."""

from __future__ import annotations

import errno
import logging
import os
import socket
from collections.abc import Callable
from types import TracebackType
from typing import Self

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from adapters.console.guard import HEADERS, Guard
from adapters.console.http import Listener, Origins
from adapters.console.logins import Logins
from adapters.console.routes import Routes
from bot.domain.errors import ConfigError, Problem

logger = logging.getLogger(__name__)

CLOSE_WITHIN = 1.0  # seconds; live streams end with the listener


def _is_worth_a_line(record: logging.LogRecord) -> bool:
    """Not that a request was malformed: aiohttp answers 400, and tells it as an error of ours."""
    return not (record.exc_info and isinstance(record.exc_info[1], HttpProcessingError))


logger.addFilter(_is_worth_a_line)


class Console:
    """Listens while it is entered. `load` makes the routes, at the first request."""

    def __init__(
        self,
        *,
        host: str,
        port: int,
        origin: str,
        logins: Logins,
        mask: Callable[[str], str],
        load: Callable[[Logins, Origins], Routes],
        proxy: str = "",
    ) -> None:
        """`origin` is the address that browsers use, empty for this machine only. X-Forwarded-For
        is trusted from the address `proxy`.
        """
        self._proxy = proxy
        self._host = host
        self._port = port
        self._origin = origin
        self._mask = mask
        self._load = load
        self.logins = logins
        self._guard: Guard | None = None
        self._runner: web.ServerRunner | None = None

    @property
    def port(self) -> int:
        """The port it listens on, also if port 0 was configured; 0 while it does not listen."""
        return self._runner.addresses[0][1] if self._runner and self._runner.addresses else 0

    @property
    def origins(self) -> Origins:
        """The addresses that browsers use."""
        return Origins(self._origin, port=self.port)

    def link(self) -> str:
        """A single-use login link, valid for five minutes. Its code follows the `#`, which browsers
        never send.
        """
        return f"{self.origins.first.url('/login')}#{self.logins.invite()}"

    async def __aenter__(self) -> Self:
        """Listen. Raises ConfigError if the address cannot be used."""
        listener = Listener(self._answer, headers=HEADERS, logger=logger)
        self._runner = runner = web.ServerRunner(listener, shutdown_timeout=CLOSE_WITHIN)
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
        """Stop listening and close every connection."""
        if self._runner is not None:
            await self._runner.cleanup()

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        """Let the guard answer a request."""
        if self._guard is None:
            origins = self.origins
            routes = self._load(self.logins, origins)
            self._guard = Guard(
                routes, logins=self.logins, origins=origins, mask=self._mask, proxy=self._proxy
            )
        return await self._guard.handle(request)

    def _problem(self, error: OSError) -> Problem:
        if isinstance(error, socket.gaierror) or error.errno in {errno.EADDRNOTAVAIL, None}:
            mend = "Write 127.0.0.1 (this machine only), or leave it out"
            return Problem("CONSOLE_HOST", f"{self._host} is no address of this machine", mend)
        reason = os.strerror(error.errno) if error.errno else str(error)
        what = f"cannot listen on {self._host}:{self._port} ({reason})"
        return Problem("CONSOLE_PORT", what, "Stop what uses it, or choose another port")
