"""The reverse websocket: OneBot servers connect to us, at any path."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from http import HTTPStatus
from types import TracebackType
from typing import Self, assert_never

from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.http11 import Request, Response

from adapters.onebot.account_resolver import Handshake
from adapters.onebot.auth import Admission, Admitted, TokenRefused, header
from adapters.onebot.calls import OneBotCalls
from adapters.onebot.connection import (
    CLOSE_WITHIN,
    PING_EVERY,
    PONG_WITHIN,
    Connection,
    socket_logger,
)
from adapters.onebot.fields import number
from adapters.onebot.peers import PeerRegistry, Role
from adapters.onebot.protocol import MAX_FRAME
from bot.core.ports import EventSink
from frostagent.types.errors import ConfigError, Problem
from frostagent.types.ports import Clock

logger = logging.getLogger(__name__)

OPEN_WITHIN = 5.0  # seconds for the whole handshake; servers wait for 2
REMEMBERED_HOSTS = 64


class ReverseServer:
    """Listens while it is entered: `async with ReverseServer(...) as server`.

    `accounts` maps accounts to their own tokens, `token` admits all others; without any token every
    client is admitted.
    """

    def __init__(
        self,
        *,
        host: str,
        port: int,
        token: str,
        accounts: Mapping[int, str] | None = None,
        sink: EventSink,
        peers: PeerRegistry,
        calls: OneBotCalls,
        clock: Clock,
    ) -> None:
        self._host = host
        self._port = port
        self._admission = Admission(token, accounts)
        self._sink = sink
        self._peers = peers
        self._calls = calls
        self._clock = clock
        self._server: Server | None = None
        self._warned: set[str] = set()

    @property
    def port(self) -> int:
        """The port it listens on, also if port 0 was configured; 0 while it does not listen."""
        if self._server is None or not self._server.sockets:
            return 0
        bound: int = self._server.sockets[0].getsockname()[1]
        return bound

    async def __aenter__(self) -> Self:
        """Listen. Raises ConfigError if the address cannot be used."""
        try:
            self._server = await serve(
                self._serve,
                self._host,
                self._port,
                # A web page sends an Origin, a OneBot server does not: without a token, that is the
                # only difference.
                origins=[None] if self._admission.is_open else None,
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
                Problem(
                    "ONEBOT_PORT",
                    f"cannot listen on {place} ({reason})",
                    "Stop what uses it, or choose another",
                )
            ) from error
        logger.info("waiting for OneBot servers on %s:%d", self._host, self.port)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close every connection (1001, going away) and stop listening."""
        if self._server is not None:
            self._server.close(reason="the bot is shutting down")
            await self._server.wait_closed()

    async def _serve(self, socket: ServerConnection) -> None:
        request = socket.request
        admitted = self._admission.judge(request) if request is not None else None
        if not isinstance(admitted, Admitted):
            return  # cannot happen after the upgrade
        handshake = Handshake(
            role=Role.read(header(request, "X-Client-Role")),
            hint=max(0, number(header(request, "X-Self-ID"))),
            bound=admitted.account,
            reserved=self._admission.reserved,
        )
        connection = Connection(
            socket,
            handshake,
            sink=self._sink,
            peers=self._peers,
            calls=self._calls,
            clock=self._clock,
        )
        await connection.run()

    def _authorize(self, socket: ServerConnection, request: Request) -> Response | None:
        """Refuse before the upgrade, which OneBot servers report best: 401 without a token, 403
        with a wrong one.
        """
        match self._admission.judge(request):
            case Admitted():
                return None
            case TokenRefused.WRONG_TOKEN:
                status, what = HTTPStatus.FORBIDDEN, "a wrong access token"
            case TokenRefused.NO_TOKEN:
                status, what = HTTPStatus.UNAUTHORIZED, "no access token"
            case never:
                assert_never(never)
        self._warn(str(socket.remote_address[0]), what)
        return socket.respond(status, f"{what}\n")

    def _warn(self, host: str, what: str) -> None:
        self._peers.refused = f"{host} was refused: it sent {what}"
        # Once for each: a OneBot server keeps trying every few seconds.
        warning = f"{host} {what}"
        if warning not in self._warned and len(self._warned) < REMEMBERED_HOSTS:
            self._warned.add(warning)
            logger.warning(
                "refused %s: it sent %s; give it the token in ONEBOT_ACCESS_TOKEN", host, what
            )
