"""The sources' hosts, the table, and a way to call the tool."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import urlsplit

import pytest

from adapters.fetching.client import HttpxWeb
from bot.core.conversation import Conversation
from bot.core.ports import Web
from frostagent.engine.tool_execution import run_body
from frostagent.types.runs import Asker
from frostagent.types.tools import ToolContext
from tests.adapters.fetching.replay import StoppedClock
from tools.get_game_version import appstore, get_game_version, steam
from tools.get_game_version.games import Games
from tools.get_game_version.rows import known_games
from tools.get_game_version.sources import hosts_of

GetVersion = Callable[..., Awaitable[str]]


@pytest.fixture
def hosts() -> set[str]:
    """The hosts of the table, of the searches, and of the examples in docs/games.md."""
    return {
        *(host for game in known_games() for source in game.sources for host in hosts_of(source)),
        *(urlsplit(url).hostname or "" for url in (steam.SEARCH, appstore.SEARCH)),
        "versions.example.net",
    }


@pytest.fixture
def games(clock: StoppedClock) -> Games:
    return Games(clock=clock)


@pytest.fixture
def ask(web: HttpxWeb, games: Games) -> GetVersion:
    """Calls the tool as the toolset does: with checked arguments and a context that has the ports."""

    async def call(table: Games = games, /, **arguments: Any) -> str:
        context = ToolContext(
            run_id="run",
            step=1,
            call_id="call",
            conversation=str(Conversation(10001, "group", 4242)),
            asker=Asker("7"),
            deadline=0,
            ports={Web: web, Games: table},
        )
        answer = await run_body(get_game_version, context, get_game_version.check(arguments))
        assert isinstance(answer, str)
        return answer

    return call
