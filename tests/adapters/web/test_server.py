"""Real requests to a real server on the loopback."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest

from adapters.web.readiness import Readiness, ServedAccount
from adapters.web.server import WebServer
from frostagent.types.errors import ConfigError

READY = Readiness(True, "", (ServedAccount(10001, "online"),))
OFFLINE = Readiness(False, "account 10001 is offline", (ServedAccount(10001, "offline"),))


async def figures() -> bytes:
    return b"frostagent_lanes 0.0\n"


def server(**more: Any) -> WebServer:
    given: dict[str, Any] = {
        "host": "127.0.0.1",
        "port": 0,
        "ready": lambda: READY,
        "metrics": figures,
    }
    return WebServer(**{**given, **more})


@asynccontextmanager
async def client(**more: Any) -> AsyncIterator[aiohttp.ClientSession]:
    async with server(**more) as web, aiohttp.ClientSession(f"http://127.0.0.1:{web.port}") as session:
        yield session


async def test_healthz_says_that_the_process_lives() -> None:
    async with client(ready=lambda: OFFLINE) as session, session.get("/healthz") as response:
        assert response.status == 200
        assert await response.json() == {"status": "ok"}


async def test_readyz_is_200_while_the_bot_can_answer_and_503_with_the_reason_else() -> None:
    now = READY
    async with client(ready=lambda: now) as session:
        async with session.get("/readyz") as response:
            assert (response.status, await response.json()) == (200, READY.to_json())
            assert response.headers["Cache-Control"] == "no-store"
        now = OFFLINE
        async with session.get("/readyz") as response:
            assert (response.status, await response.json()) == (503, OFFLINE.to_json())
            assert "10001" in json.dumps(await response.json())


async def test_metrics_are_given_as_prometheus_reads_them() -> None:
    async with client() as session, session.get("/metrics") as response:
        assert response.status == 200
        assert response.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
        assert await response.read() == b"frostagent_lanes 0.0\n"


async def test_nothing_else_is_there_and_nothing_can_be_changed() -> None:
    async with client() as session:
        for method, path, status in [
            ("GET", "/", 404),
            ("GET", "/metrics/../etc", 404),
            ("POST", "/metrics", 405),
            ("DELETE", "/healthz", 405),
            ("HEAD", "/healthz", 200),
        ]:
            async with session.request(method, path) as response:
                assert response.status == status, (method, path)


async def test_a_port_that_is_taken_is_a_problem_that_says_how_to_mend_it() -> None:
    async with server() as first:
        port = first.port
        with pytest.raises(ConfigError) as caught:
            async with server(port=port):
                pass
    (problem,) = caught.value.problems
    assert problem.name == "WEB_PORT"
    assert problem.what == f"cannot listen on 127.0.0.1:{port} (Address already in use)"
    assert "WEB_PORT=0" in problem.fix


async def test_a_taken_port_that_nobody_asked_for_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    async with server() as first, server(port=first.port, required=False) as second:
        assert second.port == 0
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"http://127.0.0.1:{first.port}/healthz") as response,
        ):
            assert response.status == 200
    (warning,) = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert "WEB_PORT=0" in warning


async def test_an_address_of_another_machine_is_a_problem_of_the_host() -> None:
    with pytest.raises(ConfigError, match=r"^WEB_HOST: 192\.0\.2\.1 is not an address of this machine"):
        async with server(host="192.0.2.1"):
            pass


async def test_the_port_is_free_again_at_the_end_even_with_connections_open() -> None:
    async with asyncio.timeout(30), server() as first:
        port = first.port
        session = aiohttp.ClientSession()
        async with session.get(f"http://127.0.0.1:{port}/healthz") as response:
            await response.read()
    assert first.port == 0
    with pytest.raises(aiohttp.ClientError):
        await session.get(f"http://127.0.0.1:{port}/healthz")
    await session.close()
    async with server(port=port) as again:
        assert again.port == port


@pytest.mark.parametrize(
    "garbage",
    [
        b"\x16\x03\x01 no http at all\r\n\r\n",
        b"GET /%b HTTP/1.1\r\nHost: x\r\n\r\n" % (b"a" * 9000),
        b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: x\r\n\r\n",
    ],
    ids=["no http", "a path too long", "a length that is none"],
)
async def test_garbage_on_the_port_is_refused_quietly(garbage: bytes, caplog: pytest.LogCaptureFixture) -> None:
    async with asyncio.timeout(30), server() as web:
        reader, writer = await asyncio.open_connection("127.0.0.1", web.port)
        writer.write(garbage)
        assert (await reader.read()).startswith(b"HTTP/1.0 400")
        writer.close()
        await writer.wait_closed()
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


async def test_a_failure_of_ours_is_still_told(caplog: pytest.LogCaptureFixture) -> None:
    async def fail() -> bytes:
        raise LookupError

    async with client(metrics=fail) as session, session.get("/metrics") as response:
        assert response.status == 500
    assert [record.levelname for record in caplog.records if record.exc_info] == ["ERROR"]


async def test_figures_of_this_machine_alone_are_not_shown_under_a_name_that_a_stranger_may_own() -> None:
    hosts = {
        "127.0.0.1": 200,
        "127.0.0.1:8080": 200,
        "[::1]:8080": 200,
        "localhost:8080": 200,
        "prometheus": 200,
        "host.docker.internal:8080": 200,
        "evil.example:8080": 403,
        "EVIL.example.": 403,
        "127.0.0.1.evil.example": 403,
        "localhost.evil.example": 403,
        "internal.evil": 403,
    }
    found: dict[str, int] = {}
    async with client() as session:
        for host in hosts:
            async with session.get("/metrics", headers={"Host": host}) as response:
                found[host] = response.status
        async with session.get("/healthz", headers={"Host": "evil.example"}) as response:
            assert response.status == 200  # nothing is in it
    assert found == hosts
    async with client(host="0.0.0.0") as session, session.get("/metrics", headers={"Host": "b.example"}) as response:
        assert response.status == 200  # who listens for others says by a firewall who may ask
