from __future__ import annotations

import asyncio

import pytest

from adapters.console.server import HEADERS
from frostagent.types.errors import ConfigError
from tests.adapters.console.visiting import visiting
from tests.fakes import until


async def test_a_port_that_is_taken_is_a_problem_of_the_configuration() -> None:
    async with visiting() as place:
        with pytest.raises(ConfigError, match="CONSOLE_PORT"):
            async with visiting(port=place.console.port):
                pass


POST = "POST /login HTTP/1.1\nSec-Fetch-Site: same-origin\nContent-Type: application/x-www-form-urlencoded"


@pytest.mark.parametrize(
    ("asked", "status"),
    [
        ("OPTIONS * HTTP/1.1", 403),
        ("CONNECT evil.example:443 HTTP/1.1", 403),
        ("GET /static/0/%0a HTTP/1.1", 404),
        ("GET / HTTP/1.1\nExpect: evil", 417),
        ("GET / HTTP/1.1\nbad header", 400),  # aiohttp's own
        ("G{T / HTTP/1.1", 400),
        (f"{POST}; charset=utf-16\nContent-Length: 1\n\na", 400),
        (f"{POST}; charset=none\nContent-Length: 1\n\na", 400),
        (f"{POST}\nContent-Encoding: gzip\nContent-Length: 1\n\na", 403),
    ],
)
async def test_no_request_gets_past_the_guard_or_into_the_log(
    asked: str, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    async with visiting() as place:
        reader, writer = await asyncio.open_connection("127.0.0.1", place.console.port)
        head, _, body = asked.partition("\n\n")
        whole = f"{head}\nHost: {place.host}\n\n{body}".replace("\n", "\r\n")
        async with asyncio.timeout(30):
            writer.write(whole.encode())
            told = (await reader.readuntil(b"\r\n\r\n")).decode()
        writer.close()
        assert told.split()[1] == str(status)
        assert all(f"{name}: {value}\r\n" in told for name, value in HEADERS.items())
        assert "Traceback" not in caplog.text


async def test_whoever_leaves_within_a_form_is_no_line_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    async with visiting() as place:
        _, writer = await asyncio.open_connection("127.0.0.1", place.console.port)
        head = f"{POST}\nHost: {place.host}\nContent-Length: 9\n\ntoken="
        writer.write(head.replace("\n", "\r\n").encode())
        await until(lambda: place.console.app is not None)  # it waits for the rest
        writer.close()
        await place.ask("GET", "/login")
        assert "Traceback" not in caplog.text
