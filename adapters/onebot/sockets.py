"""The sockets of one process: a server for OneBot implementations, or a client of one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from adapters.onebot.calls import OneBotCalls
from adapters.onebot.forward_ws import ForwardClient
from adapters.onebot.peers import Peer, PeerRegistry
from adapters.onebot.reverse_ws import ReverseServer
from adapters.onebot.transport import MediaOffers, OneBotTransport
from bot.core.ports import EventSink
from frostagent.cancellation import background
from frostagent.types.ports import Clock, Ids


class Sockets:
    """Listens for OneBot servers on `host` and `port`, or dials the one at `url` if there is a url.

    `token` is the one of every account that has none of its own in `account_tokens`; a server that
    is dialled has the only one there is. Servers may be given urls to fetch if they `pass_urls`;
    what is too large for a frame is put on `offers`, if there are some.
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
    async def open(self, sink: EventSink, *_cluster: object) -> AsyncIterator[int]:
        """Take events while the block runs; the port listened on, 0 where a server is dialled."""
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
