"""The OneBot server in forward mode: its name, whether it takes our token, what it is, and whether QQ is logged in."""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import Any, TypeAlias
from urllib.parse import urlsplit

from websockets.asyncio.client import ClientConnection
from websockets.exceptions import InvalidStatus, WebSocketException
from websockets.frames import CloseCode

from adapters.onebot.calls import Calls
from adapters.onebot.connection import Connection
from adapters.onebot.forward_ws import dial
from adapters.onebot.peers import Peers
from adapters.onebot.protocol import Reply
from bot.doctor.checks import LOG_IN, Check, warn, well, wrong
from bot.domain.errors import TransportError
from bot.domain.events import Event
from bot.domain.ports import Clock, Ids
from config.settings import Settings

# Seconds; with the goodbye they stay within one check's deadline.
RESOLVED_WITHIN = 3.0
DIALLED_WITHIN = 5.0
ANSWERED_WITHIN = 3.0
QUESTIONS = ("get_version_info", "get_status", "get_login_info")

SET_TOKEN = "Set ONEBOT_ACCESS_TOKEN to the token of the OneBot server's websocket server"  # noqa: S105  # no token
START = "Start the OneBot server, switch its websocket server on, and see that ONEBOT_URL has its host and port"
NAME = "In containers it is the name of the service, in the same network; on one machine, 127.0.0.1"

Answers: TypeAlias = dict[str, Reply | TransportError]


async def check_forward(settings: Settings, *, clock: Clock, ids: Ids) -> list[Check]:
    """Resolve, dial, ask three questions, and hang up; the first step that fails is the last one told."""
    named = await check_name(settings.onebot_url)
    if named.mend:
        return [named]
    place = urlsplit(settings.onebot_url).netloc.rpartition("@")[2]
    try:
        async with asyncio.timeout(DIALLED_WITHIN):
            socket = await dial(settings.onebot_url, settings.onebot_access_token.get_secret_value())
    except InvalidStatus as error:
        status = error.response.status_code
        if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
            return [named, wrong("onebot", f"{place} does not take our token (HTTP {status})", SET_TOKEN)]
        return [named, wrong("onebot", f"{place} is no websocket server (HTTP {status})", START)]
    except (OSError, WebSocketException, ValueError) as error:
        # Only the kind: the text of some holds the url, and with it the token.
        reason = (error.strerror if isinstance(error, OSError) else "") or type(error).__name__
        return [named, wrong("onebot", f"{place} cannot be reached ({reason})", START)]
    return [named, *await _converse(socket, place=place, clock=clock, ids=ids)]


async def check_name(url: str) -> Check:
    """Whether the host of a url is known here."""
    host = urlsplit(url).hostname or ""
    try:
        async with asyncio.timeout(RESOLVED_WITHIN):
            found = await asyncio.get_running_loop().getaddrinfo(host, None)
    except OSError:
        return wrong("onebot host", f"{host} is no name that is known here", NAME)
    return well("onebot host", f"{host} is {found[0][4][0]}")


class _Deaf:
    """An `EventSink` that hears nothing: the doctor answers nobody."""

    async def handle(self, event: Event) -> None:
        """Drop it."""


async def _converse(socket: ClientConnection, *, place: str, clock: Clock, ids: Ids) -> list[Check]:
    calls = Calls(boot=ids.trace(), deadline=ANSWERED_WITHIN)
    connection = Connection(socket, sink=_Deaf(), peers=Peers(), calls=calls, clock=clock)
    answers: Answers = {}
    async with asyncio.TaskGroup() as group:
        reading = group.create_task(connection.run())
        asking = group.create_task(_ask(connection, calls, answers))
        await asyncio.wait((reading, asking), return_when=asyncio.FIRST_COMPLETED)
        asking.cancel()  # where the server hung up, no answer will come
        await connection.close("goodbye")
    if connection.bad_token or socket.close_code == CloseCode.POLICY_VIOLATION:
        return [wrong("onebot", f"{place} does not take our token", SET_TOKEN)]
    return _judge(answers, place)


async def _ask(connection: Connection, calls: Calls, answers: Answers) -> None:
    """Ask everything at once, so that all of it takes one deadline."""

    async def ask(question: str) -> None:
        try:
            answers[question] = await calls.make(connection, question, {})
        except TransportError as error:
            answers[question] = error

    async with asyncio.TaskGroup() as group:
        for question in QUESTIONS:
            group.create_task(ask(question))


def _judge(answers: Answers, place: str) -> list[Check]:
    if not any(isinstance(answer, Reply) for answer in answers.values()):
        return [wrong("onebot", f"{place} takes the connection but answers nothing", "Restart the OneBot server")]
    version, status, login = (_data(answers.get(question)) for question in QUESTIONS)
    name = f"{version.get('app_name') or 'a OneBot server'} {version.get('app_version') or ''}".strip()
    reached = well("onebot", f"{name} at {place} takes our token")
    account = login.get("user_id")
    who = f"account {account}" if account else "the account"
    match status.get("online"):
        case True if account:
            return [reached, well("account", f"{who} is online")]
        case False:
            return [reached, wrong("account", f"{who} is offline", LOG_IN)]
        case _:
            return [
                reached,
                warn("account", f"{place} does not say who is logged in, and whether it is online", LOG_IN),
            ]


def _data(answer: Reply | TransportError | None) -> dict[str, Any]:
    match answer:
        case Reply(ok=True, data=dict(fields)):
            return fields
        case _:
            return {}
