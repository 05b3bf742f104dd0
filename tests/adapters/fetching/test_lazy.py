"""What fetches urls: nothing of it is there before the first, nor after the end."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest

from adapters.fetching.lazy import LazyWeb
from bot.runtime.version import user_agent, version
from frostagent.clock import SystemClock
from tests.documents import ROOT


@pytest.mark.system
def test_a_service_loads_no_httpx_before_a_fetch_no_metrics_library_before_a_scrape_and_never_rich() -> None:
    script = (
        "import sys, bot.cli.cli, bot.app, adapters.logs.output\n"
        "late = {'httpx', 'httpcore', 'prometheus_client', 'rich', 'pygments'}\n"
        "print((late | {'adapters.fetching.lazy'}) & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=50, check=False
    )
    assert (done.stdout, done.stderr) == ("{'adapters.fetching.lazy'}\n", "")


async def test_a_connection_that_the_first_fetch_made_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "all_proxy", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    ended = asyncio.Event()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx")
        assert await reader.read() == b""
        ended.set()
        writer.close()

    async with await asyncio.start_server(talk, "127.0.0.1", 0) as server:
        mirrors = {"public.example": f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"}
        web = LazyWeb(clock=SystemClock(), user_agent="test", base_urls=mirrors)
        await web.aclose()
        assert (await web.get("https://public.example/")).body == b"x"
        await web.aclose()
        async with asyncio.timeout(30):
            await ended.wait()


def test_who_asks_says_its_version_and_whom_to_tell() -> None:
    assert user_agent() == f"FrostAgent/{version()}"
    assert user_agent("me@example.org") == f"FrostAgent/{version()} (+me@example.org)"
