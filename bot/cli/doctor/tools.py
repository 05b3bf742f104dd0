"""The tools: which cannot be used, which files of the operator's folder are broken, and whether
the hosts that weather and game versions come from answer. Imports the tools.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from bot.build import TOOL_PORTS, build_toolset, find_tools, unknown_tools
from bot.cli.doctor.checks import Check, warn, well
from bot.cli.doctor.chinese import sentence, translate_error
from bot.domain.errors import ToolFailed
from bot.domain.language import Bilingual
from bot.domain.ports import Clock, Web
from bot.runtime.clock import SystemClock
from config.settings import Settings
from tools.get_game_version.games import Games
from tools.get_game_version.rows import known_games
from tools.get_game_version.sources import host_of, urls_of
from tools.get_weather.open_meteo import FORECAST, GEOCODER
from tools.get_weather.places import WeatherPlace
from tools.get_weather.requests import SourceFailed, WeatherKeys, WeatherQuestion
from tools.get_weather.sources import SOURCES, WeatherSource


def check_tools(settings: Settings) -> list[Check]:
    """One line if all is well, else one for each thing to fix. Blocks."""
    found = find_tools(settings)
    checks = [
        warn("tools", sentence("{}: {}", problem.name, problem.what), problem.mend)
        for problem in found.problems
    ]
    toolset = build_toolset(settings, found.tools, clock=SystemClock())
    checks += [
        warn(
            "tools",
            sentence("{} is in TOOLS_DENY, _APPROVE or _AUDIENCE, but there is no such tool", name),
            "Correct its name",
        )
        for name in unknown_tools(settings, toolset)
    ]
    for status in toolset.check_availability(TOOL_PORTS):
        if not status.available:
            mend = "The model is not told of it meanwhile; see its own documentation"
            checks.append(
                warn(
                    "tools", sentence("{} cannot be used: it {}", status.name, status.reason), mend
                )
            )
    return checks or [well("tools", sentence("all {} can be used", len(found.tools)))]


# --- their sources --------------------------------------------------------------------------------


WEATHER = (
    f"{GEOCODER}?name=Beijing&count=1",
    f"{FORECAST}?latitude=39.9&longitude=116.4&current=temperature_2m",
)
BEIJING = WeatherPlace(
    id=0, name="北京市", latitude=39.9, longitude=116.41, zone="Asia/Shanghai", adcode="110000"
)
NO_KEYS = WeatherKeys()
HTTP_OK = 200
NAMED = 3  # troubles in one line
MEND_NETWORK = (
    "See that this machine reaches it; behind a firewall set HTTPS_PROXY, or a mirror in "
    "TOOLS_MIRRORS"
)
MEND_KEY = (
    "See docs/weather.md: its key or host in .env, or TOOLS_CONTACT; until then the next source is "
    "asked"
)


async def check_weather(web: Web, *, keys: WeatherKeys = NO_KEYS, now: float = 0.0) -> list[Check]:
    """The geocoder and the forecast; and each source that is asked because of a key or a contact,
    with it.

    `now` in seconds since 1970 dates QWeather's token.
    """
    keyed = [
        row for row in SOURCES if row.serves(BEIJING, keys) and not row.serves(BEIJING, NO_KEYS)
    ]
    async with asyncio.TaskGroup() as group:
        free = group.create_task(check_urls("weather", WEATHER, web))
        asked = [
            group.create_task(
                _check_keyed(row, WeatherQuestion(place=BEIJING, web=web, keys=keys, now=now))
            )
            for row in keyed
        ]
    return [free.result(), *(task.result() for task in asked)]


async def _check_keyed(source: WeatherSource, question: WeatherQuestion) -> Check:
    """A whole answer: a refused key may come in a 200."""
    try:
        await source.fetch(question)
    except SourceFailed as error:
        return warn("weather", translate_error(str(error)), MEND_KEY)
    return well("weather", sentence("{} answers", source.name))


async def check_versions(web: Web) -> list[Check]:
    """Every host in the table of games, each asked as for one of its games."""
    asked = {host_of(source): source for game in known_games() for source in game.sources}
    return [await check_urls("versions", [urls_of(source)[0] for source in asked.values()], web)]


def check_games(settings: Settings, *, clock: Clock) -> list[Check]:
    """The rows of GAMES_FILE; nothing where it is not set."""
    problems = Games(clock=clock, file=settings.games_file).check()
    if settings.games_file is None or problems:
        return [
            warn("games", sentence("{}: {}", problem.name, problem.what), problem.mend)
            for problem in problems
        ]
    return [well("games", sentence("{} can be used", settings.games_file.name))]


async def check_urls(check: str, urls: Iterable[str], web: Web) -> Check:
    """Ask each, side by side; whatever does not answer well is a warning: the bot talks without
    it.
    """
    async with asyncio.TaskGroup() as group:
        asked = [group.create_task(_ask(url, web)) for url in urls]
    troubles = [trouble for task in asked if (trouble := task.result())]
    if not troubles:
        return well(check, "can be reached")
    named = Bilingual(
        "; ".join(troubles[:NAMED]), "；".join(translate_error(one).zh for one in troubles[:NAMED])
    )
    if len(troubles) == len(asked) > 1:
        return warn(
            check,
            sentence(
                "none of its {} hosts can be used, as {}", len(asked), translate_error(troubles[0])
            ),
            MEND_NETWORK,
        )
    if len(troubles) > NAMED:
        return warn(check, sentence("{}; and {} more", named, len(troubles) - NAMED), MEND_NETWORK)
    return warn(check, named, MEND_NETWORK)


async def _ask(url: str, web: Web) -> str:
    """Ask a source; an empty text, or what is wrong with it."""
    try:
        response = await web.get(url)
    except ToolFailed as error:
        return str(error)
    return "" if response.status == HTTP_OK else f"{url.split('/')[2]} answered {response.status}"
