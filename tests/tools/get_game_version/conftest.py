"""The sources' hosts on 127.0.0.1, the web that leads to them, and a way to call the tool."""

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
from tools.get_game_version import get_game_version
from tools.get_game_version.rows import known_games
from tools.get_game_version.sources import host_of

GetVersion = Callable[..., Awaitable[str]]


@pytest.fixture
async def server() -> AsyncIterator[Replay]:
    async with Replay() as server:
        yield server


@pytest.fixture
def clock() -> StoppedClock:
    return StoppedClock()


@pytest.fixture
async def web(server: Replay, clock: StoppedClock) -> AsyncIterator[HttpxWeb]:
    hosts = {host_of(source) for game in known_games() for source in game.sources}
    web = HttpxWeb(
        clock=clock,
        user_agent="FrostAgent/test (+tests)",
        base_urls=server.standing_in_for(*hosts),
        limits=FetchLimits(request_seconds=1),
    )
    yield web
    await web.aclose()


@pytest.fixture
def ask(web: HttpxWeb) -> GetVersion:
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
        answer = await get_game_version.run(context, get_game_version.check(arguments))
        assert isinstance(answer, str)
        return answer

    return call
