"""The connection with QQ: a server for OneBot implementations, or a client of one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from adapters.onebot.calls import OneBotCalls
from adapters.onebot.forward_ws import ForwardClient
from adapters.onebot.peers import Peer, PeerRegistry
from adapters.onebot.reverse_ws import ReverseServer
from adapters.onebot.transport import OneBotTransport
from adapters.web.file_offers import FileOffers
from bot.domain.cancellation import background
from bot.domain.cluster_queries import ClusterHandlers
from bot.domain.ports import Clock, EventSink, Ids
from config.settings import Settings


@dataclass(frozen=True, slots=True)
class Sockets:
    """The connections of this process, what is asked over them, and what is sent."""

    settings: Settings
    peers: PeerRegistry
    calls: OneBotCalls
    transport: OneBotTransport[Peer]
    clock: Clock
    ids: Ids

    @asynccontextmanager
    async def open(
        self,
        sink: EventSink,
        _durable: Callable[[], Awaitable[bool]] | None = None,
        _ears: Callable[[], ClusterHandlers] | None = None,
        /,
    ) -> AsyncIterator[int]:
        """Listen for OneBot servers or dial one; the port listened on, 0 in forward mode."""
        settings, tokens = self.settings, self.settings.access_tokens
        match settings.onebot_mode:
            case "reverse":
                async with ReverseServer(
                    host=settings.onebot_host,
                    port=settings.onebot_port,
                    token=tokens.common,
                    accounts=tokens.accounts,
                    sink=sink,
                    peers=self.peers,
                    calls=self.calls,
                    clock=self.clock,
                ) as server:
                    yield server.port
            case "forward":
                account, token = tokens.only
                client = ForwardClient(
                    url=settings.onebot_url,
                    token=token,
                    account=account,
                    sink=sink,
                    peers=self.peers,
                    calls=self.calls,
                    clock=self.clock,
                    ids=self.ids,
                )
                async with background(client.run()):
                    yield 0


def build_sockets(
    settings: Settings, offers: FileOffers | None = None, *, clock: Clock, ids: Ids
) -> Sockets:
    """Sockets that nobody has dialled yet. What is too large for a frame is put on `offers`, where
    there are some.
    """
    peers, calls = PeerRegistry(), OneBotCalls(boot=ids.trace())
    pass_urls = settings.media_urls == "pass"
    transport = OneBotTransport(peers=peers, calls=calls, pass_urls=pass_urls, offers=offers)
    return Sockets(settings, peers, calls, transport, clock, ids)
