"""In reverse mode only the bot is connected. Where none runs, the doctor listens in its place until
a server comes.
"""

from __future__ import annotations

import asyncio

from adapters.onebot.calls import OneBotCalls
from adapters.onebot.peers import PeerRegistry
from adapters.onebot.reverse_ws import ReverseServer
from bot.cli.doctor.checks import Check, warn, wrong, wrong_settings
from bot.cli.doctor.chinese import sentence
from bot.cli.doctor.interview import SENT_WITHIN, Interview
from bot.cli.doctor.reverse import CONNECT, check_ports, why_taken
from bot.domain.errors import ConfigError, NotConnected
from bot.domain.events import Event
from bot.domain.ports import Clock, Ids
from config.settings import Settings

COMES_WITHIN = 35.0
"""Seconds; NapCat dials every 5 with our settings, every 30 with its own."""

STOP_THE_BOT = (
    "Stop the bot and ask again; with docker: `docker compose stop bot`, then"
    " `docker compose run --rm --no-deps --use-aliases bot doctor --send-image`"
)


async def check_reverse(settings: Settings, *, clock: Clock, ids: Ids) -> list[Check]:
    """The ports; and, where the port is free, the first OneBot server that comes and a picture sent
    through it.
    """
    checks = await check_ports(settings)
    if await why_taken(settings.onebot_host, settings.onebot_port):
        said = "was not sent: the OneBot server talks with whatever has the port now"
        return [*checks, warn("picture", said, STOP_THE_BOT)]
    return [*checks, *await listen(settings, clock=clock, ids=ids)]


async def listen(
    settings: Settings, *, clock: Clock, ids: Ids, within: float = COMES_WITHIN
) -> list[Check]:
    """Wait so many seconds for a OneBot server, and ask it everything, a picture included."""
    calls, peers, door = (
        OneBotCalls(boot=ids.trace(), deadline=SENT_WITHIN),
        PeerRegistry(),
        _Door(),
    )
    server = ReverseServer(
        host=settings.onebot_host,
        port=settings.onebot_port,
        token=settings.access_tokens.common,
        accounts=settings.access_tokens.accounts,
        sink=door,
        peers=peers,
        calls=calls,
        clock=clock,
    )
    try:
        async with server:
            try:
                async with asyncio.timeout(within):
                    peer = peers.caller(await door.account)
            except (TimeoutError, NotConnected):
                said = sentence(
                    "none came to {}:{} within {} s",
                    settings.onebot_host,
                    server.port,
                    f"{within:g}",
                )
                return [wrong("onebot", said, CONNECT)]
            interview = Interview(peer, calls, place=sentence("account {}", peer.account))
            await interview.hold(settings, send_image=True)
            return interview.told
    except ConfigError as error:  # taken since we looked
        return wrong_settings("onebot port", error.problems)


class _Door:
    """An `EventSink` that only notes whose event comes first: every server greets with one."""

    def __init__(self) -> None:
        self.account: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def handle(self, event: Event) -> None:
        """Note whose it is."""
        if not self.account.done():
            self.account.set_result(event.self_id)
