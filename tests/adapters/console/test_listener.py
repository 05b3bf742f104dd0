from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest
from aiohttp import web

from adapters.console import server
from adapters.console.http import PageOrigin, cookie_name
from adapters.console.server import HEADERS
from adapters.console.site import Route
from tests.adapters.console.visiting import Place, visiting
from tests.bot.memory.test_newest import kept_silent
from tests.fakes import until

HUGE = "x" * 30_000_000  # more than any socket takes for somebody who reads nothing


async def give(_: web.Request) -> web.Response:
    return web.Response(text=HUGE)


async def loosened(_: web.Request) -> web.Response:
    theirs = dict.fromkeys(HEADERS, "none") | {"Cache-Control": "max-age=1"}
    return web.Response(text="well", headers=theirs)


def connections(place: Place) -> list[Any]:
    runner = place.console._runner
    assert runner is not None
    assert runner.server is not None
    return runner.server.connections


async def test_who_connects_and_does_not_ask_is_hung_up_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "HEAD_WITHIN", 0.05)
    async with visiting() as place:
        asked, own = await asyncio.open_connection("127.0.0.1", place.console.port)
        own.write(f"GET /login HTTP/1.1\r\nHost: {place.host}\r\n\r\n".encode())
        await asked.readuntil(b"</html>")
        reader, writer = await asyncio.open_connection("127.0.0.1", place.console.port)
        writer.write(b"GET /login HT")
        async with asyncio.timeout(30):
            assert await reader.read() == b""
        assert len(connections(place)) == 1  # the one that has asked
        for one in (writer, own):
            one.close()


@pytest.mark.parametrize("path", ["/huge", "/live?after=0"])
async def test_who_does_not_take_what_was_asked_for_is_hung_up_on(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with visiting(Route("GET", "/huge", give)) as place:
        await place.log_in()
        cookie = f"{cookie_name(PageOrigin('http', place.host))}={place.cookie()}"
        await place.session.close()
        place.newest.see(kept_silent(HUGE))
        await until(lambda: not connections(place))
        monkeypatch.setattr(server, "WRITE_WITHIN", 0.05)
        with socket.create_connection(("127.0.0.1", place.console.port)) as slow:
            slow.sendall(f"GET {path} HTTP/1.1\r\nHost: {place.host}\r\nCookie: {cookie}\r\n\r\n".encode())
            await until(lambda: connections(place))
            await until(lambda: not connections(place))
            assert slow.recv(12) == b"HTTP/1.1 200"


async def test_an_answer_says_nothing_else_than_we_do_but_how_long_it_may_be_kept() -> None:
    async with visiting(Route("GET", "/loosened", loosened)) as place:
        await place.log_in()
        _, text, answer = await place.ask("GET", "/loosened")
        assert text == "well"
        assert {name: answer.headers.getall(name) for name in HEADERS} == {
            name: [value] for name, value in (HEADERS | {"Cache-Control": "max-age=1"}).items()
        }
