"""What is cut off gets nothing and is not told; once it is healed it gets what was sent meanwhile."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from tests.apart import pipes
from tests.fakes import until


async def test_pipes_that_are_cut_stay_open_and_pass_nothing_on_until_they_are_healed() -> None:
    heard, ended = list[bytes](), list[asyncio.StreamWriter]()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while line := await reader.readline():
                heard.append(line)
                writer.write(line.upper())
        writer.transport.abort()
        ended.append(writer)

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server, pipes({"one": port, "other": port}) as host, asyncio.timeout(20):
        lines = {name: await asyncio.open_connection(*host.address(name)) for name in ("one", "other")}

        async def ask(name: str, word: bytes) -> bytes:
            reader, writer = lines[name]
            writer.write(word)
            return await reader.readline()

        assert await ask("one", b"before\n") == b"BEFORE\n"
        host.cut("one")
        async with asyncio.TaskGroup() as group:
            asking = group.create_task(ask("one", b"meanwhile\n"))
            assert await ask("other", b"elsewhere\n") == b"ELSEWHERE\n"
            assert await ask("other", b"again\n") == b"AGAIN\n"
            assert heard == [b"before\n", b"elsewhere\n", b"again\n"]
            host.heal("one")
        assert asking.result() == b"MEANWHILE\n"
        for _, writer in lines.values():
            writer.close()
        await until(lambda: len(ended) == 2)
