"""The reverse websocket: OneBot servers dial us, at any path."""

from __future__ import annotations

import hmac
import logging
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from http import HTTPStatus
from types import TracebackType
from typing import Self, assert_never
from urllib.parse import parse_qs

from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.http11 import Request, Response

from adapters.onebot.account_resolver import Handshake
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
from bot.domain.errors import ConfigError, Problem
from bot.domain.ports import Clock, EventSink


class TokenRefused(Enum):
    """Why somebody does not come in."""

    NO_TOKEN = auto()
    WRONG_TOKEN = auto()


@dataclass(frozen=True, slots=True)
class Admitted:
    """Somebody who comes in; `account` is the one whose token it was, 0 where the token is
    everybody's.
    """

    account: int = 0


class Admission:
    """The tokens: one for everybody who has none of their own, and one for each of these accounts.

    Without any token everybody comes in. An account that has a token is let in by that one only.
    """

    def __init__(self, token: str, accounts: Mapping[int, str] | None = None) -> None:
        common = [(0, token.encode())] if token else []
        self._tokens = [
            *common,
            *((account, own.encode()) for account, own in (accounts or {}).items()),
        ]
        self.reserved: Collection[int] = frozenset(accounts or ())

    @property
    def is_open(self) -> bool:
        """Whether everybody comes in."""
        return not self._tokens

    def judge(self, request: Request) -> Admitted | TokenRefused:
        """Compare everything that is offered with every token, so that the time it takes tells
        nothing.
        """
        if self.is_open:
            return Admitted()
        offered = list(_tokens(request))
        found = [
            account
            for account, token in self._tokens
            for one in offered
            if hmac.compare_digest(one, token)
        ]
        if found:
            return Admitted(max(found))
        return TokenRefused.WRONG_TOKEN if offered else TokenRefused.NO_TOKEN


def header(request: Request | None, name: str) -> str:
    """The first header of that name; empty where there is none."""
    values = request.headers.get_all(name) if request is not None else []
    return values[0] if values else ""


def _tokens(request: Request) -> Iterator[bytes]:
    """The tokens offered: `Bearer x`, `Token x`, a bare `x`, `?access_token=x`. `Bearer ` with
    nothing is nothing.
    """
    value = header(request, "Authorization").strip()
    scheme, _, rest = value.partition(" ")
    bare = rest.strip() if scheme.lower() in ("bearer", "token") else value
    # Nobody encodes a + in a token as %2B who writes the url by hand.
    query = request.path.partition("?")[2].partition("#")[0].replace("+", "%2B")
    if bare:
        # As the library decodes headers: the bytes that came.
        yield bare.encode("latin-1", "replace")
    for token in parse_qs(query).get("access_token", ()):
        yield token.encode()


logger = logging.getLogger(__name__)

OPEN_WITHIN = 5.0  # seconds for the whole handshake, of which we need none; servers wait for 2
REMEMBERED_HOSTS = 64


class ReverseServer:
    """Listens while it is entered: `async with ReverseServer(...) as server`.

    `token` lets anybody in whose account has none of its own among `accounts`; without any token
    everybody comes in.
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
                # A web page sends an Origin, a OneBot server none; without a token nothing else
                # tells them apart.
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
        """Close every connection with a goodbye (1001) and stop listening."""
        if self._server is not None:
            self._server.close(reason="the bot is shutting down")
            await self._server.wait_closed()

    async def _serve(self, socket: ServerConnection) -> None:
        request = socket.request
        admitted = self._admission.judge(request) if request is not None else None
        if not isinstance(admitted, Admitted):
            return  # cannot be: the upgrade is done
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

    # --- who may come in --------------------------------------------------------------------------

    def _authorize(self, socket: ServerConnection, request: Request) -> Response | None:
        """Refuse before the upgrade, where OneBot servers show it best: 401 without a token, 403
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
        # Once for each: a OneBot server tries again every few seconds, for ever.
        warning = f"{host} {what}"
        if warning not in self._warned and len(self._warned) < REMEMBERED_HOSTS:
            self._warned.add(warning)
            logger.warning(
                "refused %s: it sent %s; give it the token in ONEBOT_ACCESS_TOKEN", host, what
            )
