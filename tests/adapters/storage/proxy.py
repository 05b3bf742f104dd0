"""A way to a server that can be cut, and mended, or be held up in silence."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from socket import socket

from sqlalchemy import make_url


@dataclass
class Proxy:
    """A TCP connection to the server that can be cut, and mended. While it does not flow what comes is kept, and
    nobody is told.
    """

    host: str
    target: int
    port: int = 0
    server: asyncio.Server | None = None
    streams: list[asyncio.StreamWriter] = field(default_factory=list)
    on_data: Callable[[bytes], bool] = lambda _: True
    flows: asyncio.Event = field(default_factory=asyncio.Event)

    async def fix(self, listening: socket | None = None) -> None:
        """Let it through; over a socket that is listened on already, where there is one."""
        self.flows.set()
        if listening is None:
            self.server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        else:
            self.server = await asyncio.start_server(self._serve, sock=listening)
        self.port = self.server.sockets[0].getsockname()[1]

    async def cut(self) -> None:
        assert self.server is not None
        self.server.close()
        for stream in self.streams:
            stream.transport.abort()
        self.streams.clear()
        await self.server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there, back = await asyncio.open_connection(self.host, self.target)
        except OSError:
            writer.transport.abort()
            return
        self.streams += [writer, back]
        async with asyncio.TaskGroup() as group:
            group.create_task(self._pump(reader, back, self.on_data))
            group.create_task(self._pump(there, writer, lambda _: True))

    async def _pump(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, passes: Callable[[bytes], bool]
    ) -> None:
        try:
            while data := await reader.read(65536):
                await self.flows.wait()
                writer.write(data)
                await writer.drain()
                if not passes(data):
                    await reader.read(1)  # let the server answer; nobody will hear it
                    break
        except OSError:
            pass
        writer.transport.abort()


@asynccontextmanager
async def proxied(postgres: str) -> AsyncIterator[tuple[Proxy, str]]:
    """The same database through a proxy."""
    url = make_url(postgres)
    proxy = Proxy(url.host or "127.0.0.1", url.port or 5432)
    await proxy.fix()
    yield proxy, url.set(host="127.0.0.1", port=proxy.port).render_as_string(hide_password=False)
    await proxy.cut()
