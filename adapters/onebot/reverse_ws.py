"""The reverse websocket: OneBot servers dial us, at any path."""

from __future__ import annotations

import hmac
import logging
from collections.abc import Iterator
from http import HTTPStatus
from types import TracebackType
from typing import Self
from urllib.parse import parse_qs, urlsplit

from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.http11 import Request, Response

from adapters.onebot.calls import Calls
from adapters.onebot.connection import (
    CLOSE_WITHIN,
    INTRODUCED_WITHIN,
    PING_EVERY,
    PONG_WITHIN,
    Connection,
    socket_logger,
)
from adapters.onebot.fields import number
from adapters.onebot.peers import Peers, Role
from adapters.onebot.protocol import MAX_FRAME
from bot.domain.errors import ConfigError, Problem
from bot.domain.ports import Clock, EventSink

logger = logging.getLogger(__name__)

OPEN_WITHIN = 5.0  # seconds for the whole handshake; our own part takes no time (servers give up after 2 s)
REMEMBERED_HOSTS = 64


class ReverseServer:
    """Listens while it is entered: `async with ReverseServer(...) as server`. An empty token lets everybody in."""

    def __init__(
        self,
        *,
        host: str,
        port: int,
        token: str,
        sink: EventSink,
        peers: Peers,
        calls: Calls,
        clock: Clock,
        introduced_within: float = INTRODUCED_WITHIN,
    ) -> None:
        self._host = host
        self._port = port
        self._token = token.encode()
        self._sink = sink
        self._peers = peers
        self._calls = calls
        self._clock = clock
        self._introduced_within = introduced_within
        self._server: Server | None = None
        self._warned: set[str] = set()

    @property
    def port(self) -> int:
        """The port it listens on, also where port 0 was asked for; 0 while it does not listen."""
        if self._server is None or not self._server.sockets:
            return 0
        bound: int = self._server.sockets[0].getsockname()[1]
        return bound

    async def __aenter__(self) -> Self:
        """Listen. Raises ConfigError where the address cannot be had."""
        try:
            self._server = await serve(
                self._serve,
                self._host,
                self._port,
                # A web page sends an Origin, a OneBot server none; without a token nothing else tells them apart.
                origins=None if self._token else [None],
                process_request=self._authorize,
                compression=None,  # local traffic; NapCat offers none
                max_size=MAX_FRAME,
                open_timeout=OPEN_WITHIN,
                close_timeout=CLOSE_WITHIN,
                ping_interval=PING_EVERY,
                ping_timeout=PONG_WITHIN,
                server_header=None,
                logger=socket_logger,
            )
        except OSError as error:
            place = f"{self._host}:{self._port}"
            reason = error.strerror or str(error)
            raise ConfigError(
                Problem("ONEBOT_PORT", f"cannot listen on {place} ({reason})", "Stop what uses it, or choose another")
            ) from error
        logger.info("waiting for OneBot servers on %s:%d", self._host, self.port)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close every connection with a goodbye (1001) and stop listening."""
        if self._server is not None:
            self._server.close(reason="the bot is shutting down")
            await self._server.wait_closed()

    async def _serve(self, socket: ServerConnection) -> None:
        request = socket.request
        connection = Connection(
            socket,
            sink=self._sink,
            peers=self._peers,
            calls=self._calls,
            clock=self._clock,
            role=Role.read(_header(request, "X-Client-Role")),
            account=max(0, number(_header(request, "X-Self-ID"))),
            introduced_within=self._introduced_within,
        )
        await connection.run()

    # --- who may come in ------------------------------------------------------------------------------

    def _authorize(self, socket: ServerConnection, request: Request) -> Response | None:
        """Refuse before the upgrade, where OneBot servers show it best: 401 without a token, 403 with a wrong one."""
        if not self._token:
            return None
        offered = list(_tokens(request))
        if any(hmac.compare_digest(token, self._token) for token in offered):
            return None
        if offered:
            status, what = HTTPStatus.FORBIDDEN, "a wrong access token"
        else:
            status, what = HTTPStatus.UNAUTHORIZED, "no access token"
        self._warn(str(socket.remote_address[0]), what)
        return socket.respond(status, f"{what}\n")

    def _warn(self, host: str, what: str) -> None:
        # Once for each: a OneBot server tries again every few seconds, for ever.
        warning = f"{host} {what}"
        if warning not in self._warned and len(self._warned) < REMEMBERED_HOSTS:
            self._warned.add(warning)
            logger.warning("refused %s: it sent %s; give it the token in ONEBOT_ACCESS_TOKEN", host, what)


def _header(request: Request | None, name: str) -> str:
    values = request.headers.get_all(name) if request is not None else []
    return values[0] if values else ""


def _tokens(request: Request) -> Iterator[bytes]:
    """What was offered: `Bearer x`, `Token x`, a bare `x`, `?access_token=x`. `Bearer ` with nothing is nothing."""
    header = _header(request, "Authorization").strip()
    scheme, _, rest = header.partition(" ")
    bare = rest.strip() if scheme.lower() in ("bearer", "token") else header
    # Nobody encodes a + in a token as %2B who writes the url by hand.
    query = urlsplit(request.path).query.replace("+", "%2B")
    if bare:
        yield bare.encode("latin-1", "replace")  # as the library decodes headers: the bytes that came
    for token in parse_qs(query).get("access_token", ()):
        yield token.encode()
