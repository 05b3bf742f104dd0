"""Open-Meteo on 127.0.0.1, the web that leads to it, and a way to call the tool."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from adapters.fetching.client import FetchLimits, HttpxWeb
from bot.domain.events import Conversation
from bot.domain.ports import Web
from bot.domain.run import Asker
from bot.domain.tool import ToolContext
from tests.adapters.fetching.replay import Replay, StoppedClock
from tools.get_weather import get_weather

HOSTS = ("geocoding-api.open-meteo.com", "api.open-meteo.com")

GetWeather = Callable[..., Awaitable[str]]


@pytest.fixture
async def server() -> AsyncIterator[Replay]:
    async with Replay() as server:
        yield server


@pytest.fixture
def clock() -> StoppedClock:
    return StoppedClock()


@pytest.fixture
async def web(server: Replay, clock: StoppedClock) -> AsyncIterator[HttpxWeb]:
    web = HttpxWeb(
        clock=clock,
        user_agent="FrostAgent/test (+tests)",
        base_urls=server.standing_in_for(*HOSTS),
        limits=FetchLimits(request_seconds=1),
    )
    yield web
    await web.aclose()


@pytest.fixture
def ask(web: HttpxWeb) -> GetWeather:
    """Calls the tool as the toolset does: with checked arguments and a context that has the web."""
    context = ToolContext(
        run_id="run",
        step=1,
        call_id="call",
        conversation=Conversation(10001, "group", 4242),
        asker=Asker(7),
        deadline=0,
        ports={Web: web},
    )

    async def call(**arguments: Any) -> str:
        answer = await get_weather.run(context, get_weather.check(arguments))
        assert isinstance(answer, str)
        return answer

    return call
