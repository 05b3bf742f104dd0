"""The connection with QQ: a server for OneBot implementations, or a client of one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from adapters.onebot.calls import OneBotCalls
from adapters.onebot.forward_ws import ForwardClient
from adapters.onebot.peers import Peers
from adapters.onebot.reverse_ws import ReverseServer
from adapters.onebot.transport import OneBotTransport
from bot.domain.ports import Clock, EventSink, Ids
from bot.wiring.background import background
from config.settings import Settings


@dataclass(frozen=True, slots=True)
class OneBotLine:
    """The connections there are, what is asked over them, and what is sent."""

    peers: Peers
    calls: OneBotCalls
    transport: OneBotTransport


def build_line(settings: Settings, *, ids: Ids) -> OneBotLine:
    """A line that nobody has dialled yet."""
    peers, calls = Peers(), OneBotCalls(boot=ids.trace())
    pass_urls = settings.media_urls == "pass"
    return OneBotLine(peers, calls, OneBotTransport(peers=peers, calls=calls, pass_urls=pass_urls))


@asynccontextmanager
async def open_onebot(
    settings: Settings, line: OneBotLine, *, sink: EventSink, clock: Clock, ids: Ids
) -> AsyncIterator[int]:
    """Listen for OneBot servers or dial one; the port listened on, 0 in forward mode."""
    tokens = settings.access_tokens
    match settings.onebot_mode:
        case "reverse":
            async with ReverseServer(
                host=settings.onebot_host,
                port=settings.onebot_port,
                token=tokens.common,
                accounts=tokens.accounts,
                sink=sink,
                peers=line.peers,
                calls=line.calls,
                clock=clock,
            ) as server:
                yield server.port
        case "forward":
            account, token = tokens.only
            client = ForwardClient(
                url=settings.onebot_url,
                token=token,
                account=account,
                sink=sink,
                peers=line.peers,
                calls=line.calls,
                clock=clock,
                ids=ids,
            )
            async with background(client.run()):
                yield 0
