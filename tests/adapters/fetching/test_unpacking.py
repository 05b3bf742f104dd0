"""Bodies, packed or not, against a real server."""

from __future__ import annotations

import asyncio
import gzip
import tracemalloc
import zlib
from collections.abc import Callable

import pytest

from adapters.fetching.client import HttpxWeb
from adapters.fetching.limits import FetchLimits
from frostagent.types.errors import ToolFailed
from tests.adapters.fetching.replay import Replay

URL, PATH = "https://public.example/data", "/public.example/data"
LIMIT = 1000

MakeWeb = Callable[..., HttpxWeb]


@pytest.fixture
def web(make_web: MakeWeb) -> HttpxWeb:
    return make_web(limits=FetchLimits(body_bytes=LIMIT))


async def test_gzip_is_asked_for_and_unpacked_to_the_last_byte(server: Replay, web: HttpxWeb) -> None:
    body = bytes(range(250)) * 4
    for encoding, sent in (
        ("gzip", gzip.compress(body)),
        ("X-GZIP", gzip.compress(body)),
        ("identity", body),
        ("", body),
    ):
        server.tell(PATH, sent, headers={"Content-Encoding": encoding} if encoding else {})
        assert (await web.get(URL)).body == body, encoding
    assert server.asked[0].headers["Accept-Encoding"] == "gzip"


async def test_no_more_is_unpacked_than_may_come(server: Replay, web: HttpxWeb) -> None:
    for size in (LIMIT + 1, 64 * 2**20):
        server.tell(PATH, gzip.compress(bytes(size)), headers={"Content-Encoding": "gzip"})
        with pytest.raises(ToolFailed, match=r"public\.example sent more than 1,000 bytes"):
            await web.get(URL)


async def test_of_a_bomb_no_more_is_ever_in_memory_than_may_come(server: Replay, web: HttpxWeb) -> None:
    server.tell(PATH, gzip.compress(bytes(64 * 2**20)), headers={"Content-Encoding": "gzip"})
    tracemalloc.start()
    try:
        with pytest.raises(ToolFailed, match="sent more than"):
            await web.get(URL)
        assert tracemalloc.get_traced_memory()[1] < 8 * 2**20
    finally:
        tracemalloc.stop()


async def test_what_says_that_it_is_too_large_is_not_waited_for(make_web: MakeWeb) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1001\r\n\r\n")
        await reader.read()
        writer.close()

    async with await asyncio.start_server(talk, "127.0.0.1", 0) as server:
        root = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        web = make_web(base_urls={"public.example": root}, limits=FetchLimits(body_bytes=LIMIT))
        with pytest.raises(ToolFailed, match=r"public\.example sent more than 1,000 bytes"):
            await web.get(URL)
        await web.aclose()


@pytest.mark.parametrize("encoding", ["gzip, gzip", "br", "zstd", "deflate", "x" * 300])
async def test_what_is_packed_in_another_way_or_twice_is_not_unpacked(
    server: Replay, web: HttpxWeb, encoding: str
) -> None:
    body = gzip.compress(gzip.compress(b"x")) if "gzip" in encoding else zlib.compress(b"x")
    server.tell(PATH, body, headers={"Content-Encoding": encoding})
    with pytest.raises(ToolFailed, match=r"public\.example sent it packed as 'x*|which is not read"):
        await web.get(URL)


async def test_what_is_cut_off_or_no_gzip_at_all_is_a_failure_and_nothing_is_nothing(
    server: Replay, web: HttpxWeb
) -> None:
    for body in (gzip.compress(b"x" * 500)[:-9], b"not gzip"):
        server.tell(PATH, body, headers={"Content-Encoding": "gzip"})
        with pytest.raises(ToolFailed, match=r"public\.example could not be reached \(DecodingError\)"):
            await web.get(URL)
    server.tell(PATH, b"", headers={"Content-Encoding": "gzip"})
    assert (await web.get(URL)).body == b""
