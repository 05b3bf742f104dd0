"""Real requests to the page of files, also from those who mean no good; what was given is in a ledger."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import logging
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import aiohttp
import pytest
from yarl import URL

from adapters.web import file_route as giving
from adapters.web.file_offers import FileOffers
from adapters.web.file_route import NOTHING
from adapters.web.server import WebServer
from tests.adapters.web.test_server import client, server
from tests.cases import each_case
from tests.fakes import until

PAGE = "/media"
FILE = os.urandom(9 * 2**20 + 1)
ENCODED = base64.b64encode(FILE).decode()
LARGE = base64.b64encode(bytes(48 * 2**20)).decode()  # more than the buffers between two sockets take
PATIENCE = 10.0  # seconds


@dataclass
class Page:
    """The page, and somebody who asks there."""

    offers: FileOffers
    session: aiohttp.ClientSession
    web: WebServer

    @property
    def connections(self) -> int:
        """How many there are at the server's end."""
        server = self.web._runner.server
        assert server is not None
        return len(server.connections)

    def address(self, path: str) -> URL:
        """As it stands, without what a client would tidy up."""
        return URL(f"http://127.0.0.1:{self.web.port}{path}", encoded=True)

    async def ask(self, path: str, method: str = "GET") -> tuple[int, bytes]:
        async with self.session.request(method, self.address(path), allow_redirects=False) as response:
            return response.status, await response.read()


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


@asynccontextmanager
async def page() -> AsyncIterator[Page]:
    offers = FileOffers(PAGE)
    async with asyncio.timeout(PATIENCE), server(offers=offers) as web, aiohttp.ClientSession() as session:
        yield Page(offers, session, web)


async def test_a_file_comes_byte_for_byte_as_nothing_that_a_browser_would_run() -> None:
    async with page() as at:
        with at.offers.offer(ENCODED) as offered:
            url = at.address(offered.url)
            async with at.session.get(url) as response:
                assert (response.status, await response.read()) == (200, FILE)
            async with at.session.head(url) as head:
                assert (head.status, await head.read()) == (200, b"")
    for told in (response, head):
        assert told.headers["Content-Length"] == str(len(FILE))
        assert told.headers["Content-Type"] == "application/octet-stream"
        assert told.headers["X-Content-Type-Options"] == "nosniff"
        assert told.headers["Content-Disposition"] == "attachment"
        assert told.headers["Cache-Control"] == "no-store"
        assert "sandbox" in told.headers["Content-Security-Policy"]


async def test_a_connection_over_which_a_file_came_whole_is_good_for_another() -> None:
    async with page() as at:
        with at.offers.offer(ENCODED) as one, at.offers.offer(ENCODED) as two:
            reader, writer = await asyncio.open_connection("127.0.0.1", at.web.port)
            for offered in (one, two):
                writer.write(f"GET {offered.url} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
                assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200 OK\r\n")
                assert await reader.readexactly(len(FILE)) == FILE
            writer.close()


async def test_an_address_that_is_none_gives_nothing() -> None:
    async with page() as at, page() as elsewhere:
        with (
            at.offers.offer(ENCODED) as offered,
            at.offers.offer(ENCODED) as later,
            elsewhere.offers.offer(ENCODED) as anothers,
        ):
            with at.offers.offer(ENCODED) as over:
                pass
            good = offered.url
            changed = good[:-2] + ("A" if good[-2] != "A" else "B") + good[-1]
            none = {
                *(over.url, anothers.url, changed, good[:-1], f"{good}A", good.swapcase(), f"{good}%00"),
                *(f"{good}/", f"{good}/..", f"{good}/../x", f"{good}/{good}", f"{good}%2F..", f"{good}%2fetc%2Fpasswd"),
                *(f"{PAGE}/%2e%2e%2Fmedia", f"{PAGE}/..%2f..%2fetc%2fpasswd", f"{PAGE}/../../etc/passwd", f"{PAGE}/."),
                *(
                    PAGE,
                    f"{PAGE}/",
                    f"{PAGE}//",
                    "/",
                    good.removeprefix(PAGE),
                    f"/x{good}",
                    f"{PAGE}/*",
                    f"{PAGE}/None",
                ),
                *(good.upper(), f"{PAGE}/{base64.b64encode(FILE[:32]).decode()}", f"{PAGE}/%E2%98%83", f"{good}+"),
            }
            for path in sorted(none):
                for method in ("GET", "HEAD"):
                    status, body = await at.ask(path, method)
                    assert (status, FILE[:100] in body) == (404, False), (method, path)
            for path in (f"{PAGE}/x", over.url, anothers.url):
                assert await at.ask(path) == (404, NOTHING.encode())
            for path in (f"{PAGE}/", f"{good}/x", f"{PAGE}/x/y"):  # these are not even the page
                assert await at.ask(path) == (404, b"404: Not Found")
            ledger = (offered.asked, later.asked, over.asked, anothers.asked)
            assert ledger == (False, False, False, False)
            assert await at.ask(good) == (200, FILE)
            assert (offered.asked, later.asked) == (True, False)


@each_case("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND"])
async def test_a_file_can_be_had_and_nothing_else_be_done(method: str) -> None:
    async with page() as at:
        with at.offers.offer(ENCODED) as offered:
            status, body = await at.ask(offered.url, method)
            assert (status, offered.asked) == (405, False)
            assert len(body) < 100


async def test_without_offers_there_is_no_such_page() -> None:
    async with client() as session, session.get(f"{PAGE}/x") as response:
        assert (response.status, await response.text()) == (404, "404: Not Found")


async def test_a_file_that_is_over_in_the_middle_does_not_look_whole(caplog: pytest.LogCaptureFixture) -> None:
    async with page() as at:
        with at.offers.offer(LARGE) as offered:
            response = await at.session.get(at.address(offered.url))
            await response.content.readexactly(1)
        with pytest.raises(aiohttp.ClientError):
            await response.read()
    assert warnings(caplog) == []


async def test_who_reads_nothing_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(giving, "STALLED", 0.05)
    async with page() as at:
        with at.offers.offer(LARGE) as offered:
            reader, writer = await asyncio.open_connection("127.0.0.1", at.web.port, limit=1024)
            writer.write(f"GET {offered.url} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            await until(lambda: offered.asked)
            await until(lambda: not at.connections, seconds=PATIENCE)
            assert not offered.over
        read = 0
        with contextlib.suppress(ConnectionResetError):
            while some := await reader.read(65_536):
                read += len(some)
        assert 0 < read < 48 * 2**20
        writer.close()
    assert warnings(caplog) == []


async def test_who_hangs_up_in_the_middle_is_no_news(caplog: pytest.LogCaptureFixture) -> None:
    async with page() as at:
        with at.offers.offer(LARGE) as offered:
            response = await at.session.get(at.address(offered.url))
            await response.content.readexactly(1)
            response.close()
            await until(lambda: not at.connections, seconds=PATIENCE)
    assert warnings(caplog) == []


async def test_what_is_no_base64_is_no_file(caplog: pytest.LogCaptureFixture) -> None:
    async with page() as at:
        for wrong in ("x" * 5, "AAAA\n" * 100):
            with at.offers.offer(wrong) as offered, pytest.raises(aiohttp.ClientError):
                await at.ask(offered.url)
    assert warnings(caplog) == []
