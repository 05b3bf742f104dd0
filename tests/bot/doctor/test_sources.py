"""The tools' sources, at a server of ours in their place."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web

from adapters.fetching.client import HttpxWeb
from bot.clock import SystemClock
from bot.doctor.checks import Verdict
from bot.doctor.sources import check_versions, check_weather
from tests.bot.doctor.surroundings import HOSTS, answering


@asynccontextmanager
async def at(root: str) -> AsyncIterator[HttpxWeb]:
    port = HttpxWeb(clock=SystemClock(), user_agent="test", base_urls=dict.fromkeys(HOSTS, root))
    try:
        yield port
    finally:
        await port.aclose()


async def test_each_host_is_asked_once() -> None:
    asked: list[str] = []

    def answer(request: web.BaseRequest) -> web.Response:
        asked.append(request.path)
        return web.json_response({})

    async with answering(answer) as root, at(root) as port:
        checks = [*await check_weather(port), *await check_versions(port)]
    assert [(check.check, check.verdict) for check in checks] == [("weather", Verdict.OK), ("versions", Verdict.OK)]
    assert len(asked) == len(HOSTS)


async def test_a_source_that_cannot_be_reached_is_a_warning_that_names_it() -> None:
    async with at("http://127.0.0.1:9") as port:
        (check,) = await check_weather(port)
    assert check.verdict is Verdict.WARNING
    assert "api.open-meteo.com could not be reached" in check.said
    assert "TOOLS_MIRRORS" in check.mend


async def test_a_source_that_refuses_is_a_warning() -> None:
    async with answering(lambda _: web.Response(status=503)) as root, at(root) as port:
        (check,) = await check_versions(port)
    assert check.verdict is Verdict.WARNING
    assert "answered 503" in check.said
