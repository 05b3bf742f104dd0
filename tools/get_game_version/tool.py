"""The tool `get_game_version`: a name of a game in, its versions in words out."""

from __future__ import annotations

import asyncio

from bot.domain.errors import ToolFailed
from bot.domain.ports import Web
from bot.domain.tool import ToolContext, tool
from tools.get_game_version.rows import Game, Source, find_game, known_games
from tools.get_game_version.sources import Release, ask_source, host_of


@tool(needs=(Web,), timeout=30)
async def get_game_version(context: ToolContext, game: str) -> str:
    """Look up the latest version of a game: its number, channel, date and where that is from.

    Use it whenever somebody asks which version of a game is the newest; never answer such a question from memory.

    Args:
        game: The game's name in Chinese or English, or what players call it: "原神", "Minecraft", "LoL", "CS2".
    """
    games = known_games()
    found = find_game(game, games)
    if found is None:
        known = "；".join(row.title for row in games)
        raise ToolFailed(
            f"不认识“{game.strip()[:60]}”这个游戏。现在能查的有：{known}。"
            "要查的是其中之一就换它的名字再查；不是就如实告诉用户查不到，不要编造版本号。"
        )
    return await _ask_all(found, context.port(Web))


async def _ask_all(game: Game, web: Web) -> str:
    """Every channel that answers, in the table's order; what failed as a note. Raises ToolFailed if nothing answers."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(_ask(source, web)) for source in game.sources]
    answers = [task.result() for task in tasks]
    releases = [release for answer in answers if not isinstance(answer, ToolFailed) for release in answer]
    failures = [
        f"{source.channel}（{answer}）"
        for source, answer in zip(game.sources, answers, strict=True)
        if isinstance(answer, ToolFailed)
    ]
    if not releases:
        hosts = "、".join(dict.fromkeys(map(host_of, game.sources)))
        raise ToolFailed(
            f"{game.title} 现在查不到版本，问过 {hosts}：{'；'.join(failures)}。"
            "请如实告诉用户暂时查不到，不要编造版本号。"
        )
    lines = [game.title, *map(say_release, releases)]
    if failures:
        lines.append(f"没有查到：{'；'.join(failures)}")
    return "\n".join(lines)


async def _ask(source: Source, web: Web) -> tuple[Release, ...] | ToolFailed:
    try:
        return await ask_source(source, web)
    except ToolFailed as error:
        return error


def say_release(release: Release) -> str:
    """One line: channel, version, date, what must be said beside it, and where it is from."""
    title = f"《{release.title}》" if release.title else ""
    day = f"（{release.released:%Y-%m-%d}）" if release.released else "（日期未知）"
    beside = [part for part in (title if release.version else "", release.note) if part]
    return "，".join((f"{release.channel}：{release.version or title}{day}", *beside, f"来源 {release.source}"))
