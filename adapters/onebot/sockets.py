"""The sockets of one process: a server for OneBot implementations, or a client of one.

With the reverse websocket, OneBot servers connect to the bot, at any path. With the forward
websocket, the bot connects to one OneBot server, and reconnects whenever the connection is lost.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from enum import Enum, auto
from http import HTTPStatus
from types import TracebackType
from typing import Final, Self, assert_never

from websockets.asyncio.client import ClientConnection, connect
from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.exceptions import InvalidStatus, InvalidURI, WebSocketException
from websockets.frames import CloseCode
from websockets.http11 import Request, Response
from websockets.uri import parse_uri

from adapters.onebot.accounts import Handshake, Peer, PeerRegistry, Role
from adapters.onebot.auth import (
    Admission,
    Admitted,
    TokenRefused,
    header,
    present_token,
    with_token,
    without_secrets,
)
from adapters.onebot.calls import OneBotCalls
from adapters.onebot.connection import Connection
from adapters.onebot.fields import number
from adapters.onebot.protocol import MAX_FRAME
from adapters.onebot.transport import MediaOffers, OneBotTransport
from bot.core.language import CATALOGUE, Phrase
from bot.core.ports import EventSink
from frostagent.cancellation import background
from frostagent.types.errors import ConfigError, Problem
from frostagent.types.ports import Clock, Ids

logger = logging.getLogger(__name__)

# The library's own log. Below WARNING it contains headers and URLs with tokens, and messages.
socket_logger: Final = logging.getLogger(f"{__name__}.socket")
socket_logger.setLevel(logging.WARNING)

PING_EVERY: Final = 30.0  # seconds
PONG_WITHIN: Final = 60.0  # seconds; a pong may wait behind a large frame
CLOSE_WITHIN: Final = 3.0  # seconds

ACCEPT_WITHIN = 5.0  # seconds for the whole handshake; servers wait for 2
REMEMBERED_HOSTS = 64

OPEN_WITHIN = 10.0  # seconds
LONGEST_WAIT = 30.0  # seconds between two attempts
WAIT_FOR_OPERATOR = 60.0  # seconds between two attempts while the token is wrong


CANNOT_LISTEN = Phrase("不能监听 {place}（{why}）", "cannot listen on {place} ({why})")
OTHER_PORT = Phrase("停掉占用它的程序，或者换一个", "Stop what uses it, or choose another")
NO_SOCKET = Phrase("不是 WebSocket 地址", "this is not a websocket address")
LIKE_THIS = Phrase("写成 ws://napcat:3001 这样", "Write it like ws://napcat:3001")
CATALOGUE.register(__name__, globals())


class Sockets:
    """Listens for OneBot servers on `host` and `port`, or connects to the one at `url` if given.

    `token` applies to every account without its own in `account_tokens`; a dialled server uses the
    only token there is. With `pass_urls`, servers may be given URLs to fetch. Media too large for a
    frame goes to `offers`, if given.
    """

    def __init__(
        self,
        *,
        host: str,
        port: int,
        url: str,
        token: str,
        account_tokens: Mapping[int, str],
        pass_urls: bool,
        offers: MediaOffers | None = None,
        clock: Clock,
        ids: Ids,
    ) -> None:
        self._host = host
        self._port = port
        self._url = url
        self._token = token
        self._account_tokens = account_tokens
        self._clock = clock
        self._ids = ids
        self.peers = PeerRegistry()
        self.calls = OneBotCalls(boot=ids.trace())
        self.transport: OneBotTransport[Peer] = OneBotTransport(
            peers=self.peers, calls=self.calls, pass_urls=pass_urls, offers=offers
        )

    @asynccontextmanager
    async def open(self, sink: EventSink) -> AsyncIterator[int]:
        """Receive events while the block runs. Yields the port listened on, 0 when dialling."""
        if not self._url:
            async with ReverseServer(
                host=self._host,
                port=self._port,
                token=self._token,
                accounts=self._account_tokens,
                sink=sink,
                peers=self.peers,
                calls=self.calls,
                clock=self._clock,
            ) as server:
                yield server.port
        else:
            account, token = next(iter(self._account_tokens.items()), (0, self._token))
            client = ForwardClient(
                url=self._url,
                token=token,
                account=account,
                sink=sink,
                peers=self.peers,
                calls=self.calls,
                clock=self._clock,
                ids=self._ids,
            )
            async with background(client.run()):
                yield 0


# --- reverse: they connect to us ------------------------------------------------------------------


class ReverseServer:
    """Listens while it is entered: `async with ReverseServer(...) as server`.

    `accounts` maps accounts to their own tokens; `token` is for all others. Without any token every
    client is accepted.
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
        """The port it listens on, even for port 0; 0 while it does not listen."""
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
                # Only a web page sends an Origin; without a token, that is the only way to tell it
                # from a OneBot server.
                origins=[None] if self._admission.is_open else None,
                process_request=self._authorize,
                compression=None,  # local traffic; NapCat offers none
                max_size=MAX_FRAME,
                open_timeout=ACCEPT_WITHIN,
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
                    CANNOT_LISTEN.fill(place=place, why=reason),
                    OTHER_PORT.fill(),
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
        # once per host: a OneBot server retries every few seconds
        warning = f"{host} {what}"
        if warning not in self._warned and len(self._warned) < REMEMBERED_HOSTS:
            self._warned.add(warning)
            logger.warning(
                "refused %s: it sent %s; give it the token in ONEBOT_ACCESS_TOKEN", host, what
            )


# --- forward: the bot connects to them ------------------------------------------------------------


class Ending(Enum):
    BAD_TOKEN = auto()
    NEVER_CAME = auto()  # unreachable, or closed before its account was known
    LOST = auto()


class ForwardClient:
    """Keeps one connection while `run()` is running. The token is sent as header and in the query,
    because servers differ in which they read.

    With `account` the token belongs to that account, and all others are ignored. Raises ConfigError
    for an invalid URL.
    """

    def __init__(
        self,
        *,
        url: str,
        token: str,
        account: int = 0,
        sink: EventSink,
        peers: PeerRegistry,
        calls: OneBotCalls,
        clock: Clock,
        ids: Ids,
    ) -> None:
        _check(url)
        self._url = url
        self._place = without_secrets(url)
        self._token = token
        self._account = account
        self._sink = sink
        self._peers = peers
        self._calls = calls
        self._clock = clock
        self._ids = ids

    async def run(self) -> None:
        """Connect, read until the connection is lost, and again, until cancelled. Never raises."""
        failures = 0
        told = False
        while True:
            try:
                ending = await self._attempt(level=logging.DEBUG if failures else logging.WARNING)
            except Exception:
                logger.exception(
                    "the connection to %s broke in a way nobody expected, connecting again",
                    self._place,
                )
                ending = Ending.NEVER_CAME
            match ending:
                case Ending.LOST:
                    failures, told = 1, False
                case Ending.NEVER_CAME:
                    failures += 1
                case Ending.BAD_TOKEN:
                    self._tell_operator(logging.DEBUG if told else logging.ERROR)
                    told = True
                case _:
                    assert_never(ending)
            await self._clock.sleep(
                WAIT_FOR_OPERATOR if ending is Ending.BAD_TOKEN else self._backoff(failures)
            )

    def _backoff(self, failures: int) -> float:
        """1, 2, 4 ... 30 s, half of it random, so that many bots do not reconnect in step."""
        whole = min(LONGEST_WAIT, 2.0 ** min(failures - 1, 8))
        return whole * (1 + self._ids.jitter()) / 2

    def _tell_operator(self, level: int) -> None:
        logger.log(
            level,
            "%s does not take our access token: ONEBOT_ACCESS_TOKEN must be the token of its"
            " websocket server. Trying again every %.0f s.",
            self._place,
            WAIT_FOR_OPERATOR,
        )

    async def _attempt(self, *, level: int) -> Ending:
        """Open one connection and use it until its end. `level` is for failures: only the first of
        a series is a warning.
        """
        try:
            socket = await dial(self._url, self._token)
        except InvalidStatus as error:
            if error.response.status_code in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
                return Ending.BAD_TOKEN
            logger.log(
                level, "%s is no websocket server: HTTP %d", self._place, error.response.status_code
            )
            return Ending.NEVER_CAME
        except (OSError, WebSocketException, ValueError) as error:
            # ValueError: a redirect to an invalid address, or a bad host (UnicodeError). Only the
            # kind is logged, because the text may contain the URL with the token.
            logger.log(level, "%s cannot be reached (%s), trying on", self._place, _kind(error))
            return Ending.NEVER_CAME
        connection = Connection(
            socket,
            Handshake(bound=self._account),
            sink=self._sink,
            peers=self._peers,
            calls=self._calls,
            clock=self._clock,
        )
        try:
            await connection.run()
        finally:
            await connection.close("the bot is shutting down")
        if connection.bad_token or socket.close_code == CloseCode.POLICY_VIOLATION:
            return Ending.BAD_TOKEN
        known = connection.is_introduced
        if not known and socket.close_code == CloseCode.PROTOCOL_ERROR:
            # onebots' only answer to a wrong token (onebot.md 1.8)
            logger.log(
                level,
                "%s hung up before it said anything (%d): the access token may be wrong,"
                " ONEBOT_ACCESS_TOKEN must be the token of its websocket server. Trying on.",
                self._place,
                socket.close_code,
            )
            return Ending.NEVER_CAME
        level = logging.WARNING if known else level
        logger.log(
            level,
            "the connection to %s was lost (%s), connecting again",
            self._place,
            socket.close_code,
        )
        return Ending.LOST if known else Ending.NEVER_CAME


async def dial(url: str, token: str) -> ClientConnection:
    """Connect to a OneBot server, with the token as header and in the query.

    Raises OSError, WebSocketException and ValueError, whose texts may contain the token.
    """
    return await connect(
        with_token(url, token),
        additional_headers=present_token(token),
        compression=None,
        max_size=MAX_FRAME,
        open_timeout=OPEN_WITHIN,
        close_timeout=CLOSE_WITHIN,
        ping_interval=PING_EVERY,
        ping_timeout=PONG_WITHIN,
        proxy=None,  # proxies are meant for models, not for a OneBot server
        user_agent_header=None,
        logger=socket_logger,
    )


def _check(url: str) -> None:
    try:
        parse_uri(url).host.encode("idna")  # as a DNS lookup does first
    except (InvalidURI, ValueError):
        # Without the url and the cause: either may contain the token.
        raise ConfigError(Problem("ONEBOT_URL", NO_SOCKET.fill(), LIKE_THIS.fill())) from None


def _kind(error: Exception) -> str:
    reason = error.strerror if isinstance(error, OSError) else ""
    return reason or type(error).__name__
