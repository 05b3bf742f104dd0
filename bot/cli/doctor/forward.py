"""The OneBot server in forward mode: its name, whether it can be dialled and takes our token, and
what it says.
"""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from urllib.parse import urlsplit

from websockets.asyncio.client import ClientConnection
from websockets.exceptions import InvalidStatus, WebSocketException
from websockets.frames import CloseCode

from adapters.onebot.calls import OneBotCalls
from adapters.onebot.connection import Connection
from adapters.onebot.forward_ws import dial
from adapters.onebot.peers import PeerRegistry
from bot.cli.doctor.checks import Check, well, wrong
from bot.cli.doctor.chinese import sentence
from bot.cli.doctor.interview import RESTART, SENT_WITHIN, Interview
from bot.domain.events import Event
from bot.domain.ports import Clock, Ids
from config.settings import Settings

# Seconds; with the goodbye they stay within one check's deadline.
RESOLVED_WITHIN = 3.0
DIALLED_WITHIN = 5.0

BE_LET_IN = "Set ONEBOT_ACCESS_TOKEN to the token of the OneBot server's websocket server"
START = (
    "Start the OneBot server, switch its websocket server on, and see that ONEBOT_URL has its host "
    "and port"
)
NAME = "In containers it is the name of the service, in the same network; on one machine, 127.0.0.1"


async def check_forward(
    settings: Settings, *, clock: Clock, ids: Ids, send_image: bool = False
) -> list[Check]:
    """Resolve, dial, ask, and hang up; the first step that fails is the last one told."""
    named = await check_name(settings.onebot_url)
    if named.mend:
        return [named]
    place = urlsplit(settings.onebot_url).netloc.rpartition("@")[2]
    try:
        async with asyncio.timeout(DIALLED_WITHIN):
            socket = await dial(settings.onebot_url, settings.access_tokens.only[1])
    except InvalidStatus as error:
        status = error.response.status_code
        if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
            return [
                named,
                wrong(
                    "onebot",
                    sentence("{} does not take our token (HTTP {})", place, status),
                    BE_LET_IN,
                ),
            ]
        return [
            named,
            wrong("onebot", sentence("{} is no websocket server (HTTP {})", place, status), START),
        ]
    except (OSError, WebSocketException, ValueError) as error:
        # Only the kind: the text of some holds the url, and with it the token.
        reason = (error.strerror if isinstance(error, OSError) else "") or type(error).__name__
        return [named, wrong("onebot", sentence("{} cannot be reached ({})", place, reason), START)]
    told = await _converse(
        socket, settings, place=place, send_image=send_image, clock=clock, ids=ids
    )
    return [named, *told]


async def check_name(url: str) -> Check:
    """Whether the host of a url is known here."""
    host = urlsplit(url).hostname or ""
    try:
        async with asyncio.timeout(RESOLVED_WITHIN):
            found = await asyncio.get_running_loop().getaddrinfo(host, None)
    except OSError:
        return wrong("onebot host", sentence("{} is no name that is known here", host), NAME)
    return well("onebot host", sentence("the address of {} is {}", host, found[0][4][0]))


class _Deaf:
    """An `EventSink` that hears nothing: the doctor answers nobody."""

    async def handle(self, event: Event) -> None:
        """Drop it."""


async def _converse(
    socket: ClientConnection,
    settings: Settings,
    *,
    place: str,
    send_image: bool,
    clock: Clock,
    ids: Ids,
) -> list[Check]:
    calls = OneBotCalls(boot=ids.trace(), deadline=SENT_WITHIN)
    connection = Connection(socket, sink=_Deaf(), peers=PeerRegistry(), calls=calls, clock=clock)
    interview = Interview(connection, calls, place=place)
    async with asyncio.TaskGroup() as group:
        reading = group.create_task(connection.run())
        asking = group.create_task(interview.hold(settings, send_image=send_image))
        await asyncio.wait((reading, asking), return_when=asyncio.FIRST_COMPLETED)
        asking.cancel()  # where the server hung up, no answer will come
        await connection.close("goodbye")
    if connection.bad_token or socket.close_code == CloseCode.POLICY_VIOLATION:
        return [wrong("onebot", sentence("{} does not take our token", place), BE_LET_IN)]
    if socket.close_code == CloseCode.PROTOCOL_ERROR and not connection.is_introduced:
        return [
            wrong(
                "onebot", sentence("{} hangs up at once: our token may be wrong", place), BE_LET_IN
            )
        ]
    return interview.told or [
        wrong("onebot", sentence("{} takes the connection but answers nothing", place), RESTART)
    ]
