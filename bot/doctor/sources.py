"""The sources of the tools: the hosts of weather and of game versions, each asked once, through the `Web` port."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from bot.doctor.checks import Check, warn, well
from bot.domain.errors import ToolFailed
from bot.domain.ports import Web
from tools.get_game_version.rows import known_games
from tools.get_game_version.sources import KINDS, host_of
from tools.get_weather.open_meteo import FORECAST, GEOCODER

WEATHER = (
    f"{GEOCODER}?name=Beijing&count=1",
    f"{FORECAST}?latitude=39.9&longitude=116.4&current=temperature_2m",
)
OK = 200
MEND = "See that this machine reaches it; behind a firewall set HTTPS_PROXY, or a mirror in TOOLS_MIRRORS"


async def check_weather(web: Web) -> list[Check]:
    """The geocoder and the forecast."""
    return [await check_urls("weather", WEATHER, web)]


async def check_versions(web: Web) -> list[Check]:
    """Every host in the table of games, each asked as for one of its games."""
    asked = {host_of(source): source for game in known_games() for source in game.sources}
    return [await check_urls("versions", [KINDS[source.kind][0](source) for source in asked.values()], web)]


async def check_urls(check: str, urls: Iterable[str], web: Web) -> Check:
    """Ask each, side by side; whatever does not answer well is a warning: the bot talks without it."""
    async with asyncio.TaskGroup() as group:
        asked = [group.create_task(_ask(url, web)) for url in urls]
    troubles = [trouble for task in asked if (trouble := task.result())]
    return warn(check, "; ".join(troubles), MEND) if troubles else well(check, "can be reached")


async def _ask(url: str, web: Web) -> str:
    """What is wrong with a source; empty where nothing is."""
    try:
        response = await web.get(url)
    except ToolFailed as error:
        return str(error)
    return "" if response.status == OK else f"{url.split('/')[2]} answered {response.status}"
