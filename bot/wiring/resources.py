"""The means of runs: models, tools, and what tools can use; opened and closed with the service."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from aiohttp import ClientSession

from adapters.media.attachments import Transcribe
from adapters.openai.client import make_session
from adapters.openai.endpoint import join_url
from adapters.openai.transcription import Transcription
from adapters.words.word_file import WordFile
from bot.domain.command import Command
from bot.domain.language import NotifyOwners
from bot.domain.ports import ChatModel, Clock, Ids
from bot.models.meter import CountedSpeech, Meter
from bot.policy.prices import read_known
from bot.wiring.discovery import Discovered, report
from bot.wiring.fetching import LateWeb
from bot.wiring.media import Foreign, open_media
from bot.wiring.models import Models, build_models
from bot.wiring.subagents import Staff
from bot.wiring.tools import build_ports, build_toolset
from config.settings import Settings
from tools.get_game_version.games import Games


@dataclass(frozen=True, slots=True)
class Resources:
    """`ports` are what tools can use in any run; the toolset is the staff's. `commands` are an
    operator's own. `transcribe` makes text of speech, where somebody can; `words` is the word list,
    where there is one.
    """

    models: Models
    staff: Staff
    games: Games
    media: Foreign
    ports: Mapping[type, object]
    transcribe: Transcribe | None = None
    commands: tuple[Command, ...] = ()
    words: WordFile | None = None


@asynccontextmanager
async def open_resources(
    settings: Settings,
    found: Discovered,
    *,
    wrap: Callable[[ChatModel], ChatModel],
    meter: Meter,
    user_agent: str,
    clock: Clock,
    ids: Ids,
    tell: NotifyOwners,
) -> AsyncIterator[Resources]:
    """All of them, while the block runs. Raises ConfigError for a file that cannot be used."""
    report(found.problems)
    async with AsyncExitStack() as stack:
        session = await stack.enter_async_context(make_session())
        models = build_models(
            settings, session=session, wrap=wrap, meter=meter, clock=clock, ids=ids, tell=tell
        )
        web = LateWeb(settings, clock=clock, user_agent=user_agent)
        stack.push_async_callback(web.aclose)
        media = await stack.enter_async_context(
            open_media(settings, clock=clock, user_agent=user_agent, tell=tell)
        )
        games = Games(clock=clock, file=settings.games_file)
        games.check()
        words = None if settings.words_file is None else WordFile(settings.words_file)
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
        hears = listener(settings, session, meter=meter, clock=clock)
        yield Resources(models, staff, games, media, ports, hears, found.commands, words)


def listener(
    settings: Settings, session: ClientSession, *, meter: Meter, clock: Clock
) -> Transcribe | None:
    """Who makes text of speech, and counts it; None where nobody is named."""
    if not settings.stt_base_url:
        return None
    dictate = Transcription(
        session=session,
        base_url=settings.stt_base_url,
        api_key=settings.stt_api_key.get_secret_value(),
        model=settings.stt_model,
    )
    host = join_url(settings.stt_base_url).host or ""
    price = read_known(settings.llm_prices).price(settings.stt_model, host)
    return CountedSpeech(dictate, name=dictate.name, price=price, meter=meter, clock=clock)
