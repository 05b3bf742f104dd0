"""Servers for tests: programs of this folder over stdio and HTTP, and what calls their tools."""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from frostagent.engine.server_tools import ServerTools
from frostagent.engine.toolset import Toolset
from frostagent.mcp import MCPServer, connected
from frostagent.types.results import ToolResult

HOUSE = Path(__file__).parent / "server.py"
STRANGE = Path(__file__).parent / "strange.py"


def house(**options: Any) -> MCPServer:
    """The server that does all that servers do, over stdio."""
    return MCPServer("house", command=sys.executable, args=[str(HOUSE)], **{"trust": "full", **options})


def strange(mode: str, **options: Any) -> MCPServer:
    return MCPServer("odd", command=sys.executable, args=[str(STRANGE), mode], **{"trust": "full", **options})


@asynccontextmanager
async def offering(server: MCPServer) -> AsyncIterator[Toolset]:
    """A toolset with the tools of a server, connected while the block runs."""
    tools = Toolset()
    kept = ServerTools(tools, server)
    async with connected([server]):
        yield tools
        kept.withdraw()


async def run(tools: Toolset, name: str, /, **arguments: Any) -> ToolResult:
    return await tools.execute(name, arguments)


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


@asynccontextmanager
async def over_http(port: int) -> AsyncIterator[str]:
    """The house over HTTP; its url. It is killed at the end."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, str(HOUSE), str(port)), stderr=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL
    )
    try:
        while True:
            with suppress(OSError):
                _, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.close()
                await writer.wait_closed()
                break
            await asyncio.sleep(0.02)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.kill()
        await process.wait()
