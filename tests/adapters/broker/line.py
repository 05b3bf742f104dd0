"""A line to a broker of which its end is all that is told, as through a proxy: no word of the broker's, no reset."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from urllib.parse import urlsplit


@dataclass
class Line:
    """While it is held nothing of what is said gets there, and what the broker says is kept."""

    host: str
    target: int
    is_held: bool = False
    kept: bytearray = field(default_factory=bytearray)
    last: asyncio.StreamWriter | None = None
    streams: list[asyncio.StreamWriter] = field(default_factory=list)

    async def end(self) -> None:
        """All that was kept comes at once, and the end of the stream behind it; the next one is held no more."""
        assert self.last is not None
        self.last.write(bytes(self.kept))
        await self.last.drain()
        self.is_held = False
        self.last.write_eof()  # to close would reset it, where something that was said is not read yet

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection(self.host, self.target)
        self.last = writer
        self.streams += [writer, back]
        async with asyncio.TaskGroup() as group:
            group.create_task(self._pass(reader, back))
            group.create_task(self._pass(there, writer, keeps=True))

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, keeps: bool = False) -> None:
        try:
            while data := await reader.read(65536):
                if not self.is_held:
                    writer.write(data)
                    await writer.drain()
                elif keeps:
                    self.kept += data
        except OSError:
            pass
        writer.close()


@asynccontextmanager
async def line_to(url: str) -> AsyncIterator[tuple[Line, str]]:
    """The same broker over such a line."""
    parts = urlsplit(url)
    line = Line(parts.hostname or "127.0.0.1", parts.port or 5672)
    server = await asyncio.start_server(line.serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    yield line, parts._replace(netloc=f"{parts.username}:{parts.password}@127.0.0.1:{port}").geturl()
    server.close()
    for stream in line.streams:
        stream.transport.abort()
        with suppress(OSError):
            await stream.wait_closed()
    await server.wait_closed()
