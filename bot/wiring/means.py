"""The means of runs: models, tools, and what tools can use; opened and closed with the service."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from adapters.openai.client import make_session
from bot.domain.chat import Attempt
from bot.domain.ports import ChatModel, Clock, Ids
from bot.wiring.discovery import Discovered, report
from bot.wiring.fetching import LateWeb
from bot.wiring.media import Foreign, open_media
from bot.wiring.models import Models, build_models
from bot.wiring.subagents import Staff
from bot.wiring.tools import build_ports, build_toolset
from config.settings import Settings
from tools.get_game_version.games import Games


@dataclass(frozen=True, slots=True)
class Means:
    """`ports` are what tools can use in any run; the toolset is the staff's."""

    models: Models
    staff: Staff
    games: Games
    media: Foreign
    ports: Mapping[type, object]


@asynccontextmanager
async def open_means(
    settings: Settings,
    found: Discovered,
    *,
    wrap: Callable[[ChatModel], ChatModel],
    count: Callable[[Attempt], None],
    user_agent: str,
    clock: Clock,
    ids: Ids,
    tell: Callable[[str], None],
) -> AsyncIterator[Means]:
    """All of them, while the block runs. Raises ConfigError for a file that cannot be used."""
    report(found.problems)
    async with AsyncExitStack() as stack:
        session = await stack.enter_async_context(make_session())
        models = build_models(
            settings, session=session, wrap=wrap, count=count, clock=clock, ids=ids, tell=tell
        )
        web = LateWeb(settings, clock=clock, user_agent=user_agent)
        stack.push_async_callback(web.aclose)
        media = await stack.enter_async_context(
            open_media(settings, clock=clock, user_agent=user_agent)
        )
        games = Games(clock=clock, file=settings.games_file)
        games.check()
        toolset = build_toolset(settings, found.tools, clock=clock)
        staff = Staff(settings, models=models, toolset=toolset, clock=clock)
        ports = build_ports(
            settings,
            subagents=staff.subagents,
            media=media.media,
            web=web,
            games=games,
            clock=clock,
        )
        yield Means(models, staff, games, media, ports)
