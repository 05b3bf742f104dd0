"""The forward websocket: we connect to one OneBot server, and again whenever that is lost."""

from __future__ import annotations

import logging
from enum import Enum, auto
from http import HTTPStatus
from typing import assert_never

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidStatus, InvalidURI, WebSocketException
from websockets.frames import CloseCode
from websockets.uri import parse_uri

from adapters.onebot.account_resolver import Handshake
from adapters.onebot.auth import present_token, with_token, without_secrets
from adapters.onebot.calls import OneBotCalls
from adapters.onebot.connection import (
    CLOSE_WITHIN,
    PING_EVERY,
    PONG_WITHIN,
    Connection,
    socket_logger,
)
from adapters.onebot.peers import PeerRegistry
from adapters.onebot.protocol import MAX_FRAME
from bot.core.ports import EventSink
from frostagent.types.errors import ConfigError, Problem
from frostagent.types.ports import Clock, Ids

logger = logging.getLogger(__name__)

OPEN_WITHIN = 10.0  # seconds
LONGEST_WAIT = 30.0  # seconds between two attempts
WAIT_FOR_OPERATOR = 60.0  # seconds between two attempts while the token is wrong


class Ending(Enum):
    """How an attempt ended."""

    BAD_TOKEN = auto()
    NEVER_CAME = auto()  # unreachable, or closed before its account was known
    LOST = auto()


class ForwardClient:
    """Keeps one connection while `run()` is running. The token is sent as header and as query:
    servers differ in which they read.

    With `account` the token belongs to that account, and everything about another is ignored.
    Raises ConfigError for an invalid address.
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
        """Connect, read until the connection is lost, and connect again, until cancelled. Never
        raises.
        """
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
        """1, 2, 4 ... 30 s, and a random part of half of it, so that many bots do not reconnect
        in step.
        """
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
        """One connection from its opening to its end. `level` is for failures: only the first of a
        series is a warning.
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
            # kind is logged: the text of some contains the url, and with it the token.
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
            # onebots gives no other answer to a wrong token (onebot.md 1.8)
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
    """Connect to a OneBot server, with the token as header and as query.

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
        proxy=None,  # a OneBot server is near; proxies are meant for the model
        user_agent_header=None,
        logger=socket_logger,
    )


def _check(url: str) -> None:
    try:
        parse_uri(url).host.encode("idna")  # as a DNS look-up does first
    except (InvalidURI, ValueError):
        # Without the url and the cause: either may contain the token.
        problem = Problem(
            "ONEBOT_URL", "this is no websocket address", "Write it like ws://napcat:3001"
        )
        raise ConfigError(problem) from None


def _kind(error: Exception) -> str:
    reason = error.strerror if isinstance(error, OSError) else ""
    return reason or type(error).__name__
