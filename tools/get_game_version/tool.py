"""The tool `get_game_version`: takes a game's name, reports its versions."""

from __future__ import annotations

import asyncio

from bot.core.ports import Web
from frostagent.types.errors import InvalidArguments, ToolFailed
from frostagent.types.tools import ToolContext, tool
from tools.get_game_version.games import Games, Missed
from tools.get_game_version.names import fold, language_of
from tools.get_game_version.releases import tidy
from tools.get_game_version.report import (
    ChannelAnswer,
    report_missed,
    report_silence,
    report_versions,
)
from tools.get_game_version.resolver import FoundGame, resolve
from tools.get_game_version.rows import Json, Source, channels_of
from tools.get_game_version.sources import ask_source, fresh_for, hosts_of

CHANNEL_SECONDS = 20.0
LONGEST = 80


@tool(needs=(Web, Games), timeout=45, side_effects="read", idempotent=True)
async def get_game_version(context: ToolContext, game: str, name_en: str = "") -> str:
    """Look up the latest version of a game: its number, channel, date and where that is from.

    Use it whenever somebody asks which version of a game is the newest; never answer such a
    question from memory.

    Args:
        game: The game's name as the user wrote it, in Chinese or English, or what players call it:
            "原神", "LoL".
        name_en: The game's official English name, if you know it and `game` is not that already:
            "Elden Ring".
    """
    games, web = context.port(Games), context.port(Web)
    name, english = tidy(game)[:LONGEST], tidy(name_en)[:LONGEST]
    if not fold(name):
        raise InvalidArguments(
            "game: must be the name of a game", fields=("game: must be the name of a game",)
        )
    language = language_of(name)
    found = await resolve(name, english, games, web)
    if isinstance(found, Missed):
        raise ToolFailed(report_missed(name, found, language))
    answers = await ask_all(found, games, web)
    if not any(answer.releases for answer in answers):
        hosts = tuple(
            dict.fromkeys(host for source in found.game.sources for host in hosts_of(source))
        )
        raise ToolFailed(report_silence(found, answers, hosts, language))
    return report_versions(found, answers, language)


async def ask_all(found: FoundGame, games: Games, web: Web) -> tuple[ChannelAnswer, ...]:
    """All channels of the game, concurrently, in the order of its row."""
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(ask_channel(channel, sources, _guard(found), games, web))
            for channel, sources in channels_of(found.game).items()
        ]
    return tuple(task.result() for task in tasks)


async def ask_channel(
    channel: str, sources: list[Source], names: frozenset[str], games: Games, web: Web
) -> ChannelAnswer:
    """The first answer of a channel's sources; without any, one from the last day."""
    troubles: list[str] = []
    try:
        async with asyncio.timeout(CHANNEL_SECONDS):
            for source in sources:
                if kept := games.kept(source, younger=fresh_for(source)):
                    return ChannelAnswer(channel, kept.releases)
                try:
                    releases = await ask_source(source, web, names=names)
                except ToolFailed as error:
                    troubles.append(str(error))
                    continue
                games.keep(source, releases)
                return ChannelAnswer(channel, releases)
    except TimeoutError:
        troubles.append(f"took longer than {CHANNEL_SECONDS:g} s")
    trouble = (
        ""
        if all(isinstance(source, Json) and source.optional for source in sources)
        else "; ".join(troubles)
    )
    kept = max(filter(None, map(games.kept, sources)), key=lambda kept: kept.at, default=None)
    return (
        ChannelAnswer(channel, kept.releases, games.age(kept), trouble)
        if kept
        else ChannelAnswer(channel, trouble=trouble)
    )


def _guard(found: FoundGame) -> frozenset[str]:
    """The names that a store's answer must fit; none if a search has matched the game."""
    return frozenset() if found.store else found.game.names
