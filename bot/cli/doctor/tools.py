"""Checks of the tools: unusable tools, broken files in the operator's folder, and whether the hosts
for weather and game versions answer. Imports the tools.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Final

from bot.cli.checks import Check, ok, warning
from bot.configured_tools import (
    TOOL_PORTS,
    build_toolset,
    find_tools,
    lacking_libraries,
    lacking_tools,
    search_account,
    unknown_tools,
)
from bot.core.language import CATALOGUE, Bilingual, Phrase, text_of
from bot.core.ports import Web
from config.settings import Settings
from frostagent.clock import SystemClock
from frostagent.types.errors import ToolFailed
from frostagent.types.ports import Clock
from tools.get_game_version.games import Games
from tools.get_game_version.rows import known_games
from tools.get_game_version.sources import host_of, urls_of
from tools.get_weather.open_meteo import FORECAST, GEOCODER
from tools.get_weather.places import WeatherPlace
from tools.get_weather.requests import SourceFailed, WeatherKeys, WeatherQuestion
from tools.get_weather.sources import SOURCES, WeatherSource
from tools.search_web.search import ask_service
from tools.search_web.services import SearchQuery

BROKEN: Final = Phrase("{file}: {what}", "{file}: {what}")


NO_SUCH_TOOL: Final = Phrase(
    "TOOLS_DENY、_APPROVE 或 _AUDIENCE 里写了 {tool}，但没有这个工具",
    "{tool} is in TOOLS_DENY, _APPROVE or _AUDIENCE, but there is no such tool",
)
CORRECT_NAME: Final = Phrase("请改正名称", "Correct its name")
SEE_ITS_DOCUMENTATION: Final = Phrase(
    "在那之前模型不知道有它；请看它自己的文档",
    "Until then the model does not see it; see its own documentation",
)
UNUSABLE: Final = Phrase("{tool} 用不了：{why}", "{tool} cannot be used: it {why}")
ALL_USABLE: Final = Phrase("{count} 个都可以用", "all {count} can be used")
SOURCE_ANSWERS: Final = Phrase("{source} 有答复", "{source} answers")
GAMES_USABLE: Final = Phrase("{file} 可以用", "{file} can be used")
REACHABLE: Final = Phrase("连得上", "can be reached")
NO_HOSTS: Final = Phrase(
    "{count} 个地址都用不了，比如：{first}", "none of its {count} hosts can be used: {first}"
)
AND_MORE: Final = Phrase("{first}；还有 {more} 个", "{first}; and {more} more")


def check_tools(settings: Settings) -> list[Check]:
    """One check if all is well, else one for each problem. Blocks."""
    found = find_tools(settings)
    checks = [
        warning("tools", BROKEN, problem.fix, file=problem.name, what=problem.what)
        for problem in found.problems
    ]
    toolset = build_toolset(settings, found.tools, clock=SystemClock())
    checks += [
        warning(
            "tools",
            NO_SUCH_TOOL,
            CORRECT_NAME,
            tool=name,
        )
        for name in unknown_tools(settings, toolset)
    ]
    off = lacking_tools(settings)
    for status in toolset.check_availability(TOOL_PORTS):
        if not status.available and status.name not in off:
            fix = SEE_ITS_DOCUMENTATION
            checks.append(
                warning(
                    "tools",
                    UNUSABLE,
                    fix,
                    tool=status.name,
                    why=status.reason,
                )
            )
    return checks or [ok("tools", ALL_USABLE, count=len(found.tools) - len(off))]


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
NAMED = 3  # problems in one line
ANSWERED: Final = Phrase("{host} 答复了 {status}", "{host} answered {status}")
MEND_NETWORK = Phrase(
    "看看这台机器连不连得上；有防火墙就设 HTTPS_PROXY，或者在 TOOLS_MIRRORS 里设镜像",
    "Check that this machine reaches it; behind a firewall, set HTTPS_PROXY or a mirror in"
    " TOOLS_MIRRORS",
)
MEND_KEY = Phrase(
    "见 docs/zh/weather.md：检查 .env 里的密钥、地址或 TOOLS_CONTACT；在那之前会用下一个来源",
    "See docs/weather.md: its key or host in .env, or TOOLS_CONTACT; until then "
    "the next source is asked",
)
SEARCH_OFF: Final = Phrase("没有开：{why}", "off: it {why}")
SEARCH_WRONG: Final = Phrase("用不了：{why}", "cannot be used: it {why}")
SEARCH_ANSWERS: Final = Phrase("{name} 有答复，{price}", "{name} answers, {price}")
FREE: Final = Phrase("不计价（没有设 SEARCH_PRICE）", "at no price (SEARCH_PRICE is not set)")
PRICED: Final = Phrase("每千次 {price} 美元", "${price} for 1,000 searches")
ALL_READ: Final = Phrase(
    "大家发的文本、Office 文档、PDF、电子书都能读，压缩包能列出来",
    "texts, Office documents, PDFs and e-books that people send can be read, archives listed",
)
SOME_READ: Final = Phrase(
    "大家发的文本和 Office 文档能读，压缩包能列出来；读 PDF 和电子书{lack}",
    "texts and Office documents that people send can be read, archives listed; reading PDFs and"
    " e-books {lack}",
)
CANNOT_READ: Final = Phrase("读不了网页", "pages cannot be read")
MEND_SEARCH: Final = Phrase(
    "见 docs/zh/web.md：检查 SEARCH_URL、SEARCH_KEY 和 SEARCH_KIND；在那之前它不能联网搜索",
    "See docs/web.md: SEARCH_URL, SEARCH_KEY and SEARCH_KIND; until then it cannot search the web",
)
CATALOGUE.register(__name__, globals())


async def check_weather(web: Web, *, keys: WeatherKeys = NO_KEYS, now: float = 0.0) -> list[Check]:
    """Check the geocoder, the forecast, and each source that a key or a contact enables. `now`
    (seconds since 1970) dates QWeather's token.
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
    """Whether the body is a real answer: a refused key may come with status 200."""
    try:
        await source.fetch(question)
    except SourceFailed as error:
        return warning("weather", text_of(error), MEND_KEY)
    return ok("weather", SOURCE_ANSWERS, source=source.name)


async def check_search(settings: Settings, web: Web) -> list[Check]:
    """One search with the operator's account, billed as usual (none if searching is off), and
    whether pages can be read.
    """
    return [*await _check_service(settings, web), *_check_reading(settings)]


def check_documents() -> list[Check]:
    """Which of the files that people send can be read."""
    if lack := lacking_libraries():
        return [ok("documents", SOME_READ, lack=lack)]
    return [ok("documents", ALL_READ)]


def _check_reading(settings: Settings) -> list[Check]:
    """Empty if pages can be read, or reading them is off."""
    lack = lacking_tools(settings).get("read_page")
    return [warning("search", CANNOT_READ, lack)] if lack is not None and settings.has_web else []


async def _check_service(settings: Settings, web: Web) -> list[Check]:
    account = search_account(settings)
    is_wanted = account.is_set and account.kind != "none"
    if (lack := account.lacks) is not None:
        if is_wanted:
            return [warning("search", SEARCH_WRONG, MEND_SEARCH, why=lack)]
        return [ok("search", SEARCH_OFF, why=lack)]
    try:
        await ask_service(account, SearchQuery(words="FrostAgent", count=1), web=web)
    except ToolFailed as error:
        return [warning("search", text_of(error), MEND_SEARCH)]
    price = settings.search_price
    told = PRICED.fill(price=f"{price:g}") if price else FREE.fill()
    name = account.service.name if account.service else ""
    return [ok("search", SEARCH_ANSWERS, name=name, price=told)]


async def check_versions(web: Web) -> list[Check]:
    """Check every host in the table of games with a request for one of its games."""
    asked = {host_of(source): source for game in known_games() for source in game.sources}
    return [await check_urls("versions", [urls_of(source)[0] for source in asked.values()], web)]


def check_games(settings: Settings, *, clock: Clock) -> list[Check]:
    """Check the rows of GAMES_FILE, if it is set."""
    problems = Games(clock=clock, file=settings.games_file).check()
    if settings.games_file is None or problems:
        return [
            warning("games", BROKEN, problem.fix, file=problem.name, what=problem.what)
            for problem in problems
        ]
    return [ok("games", GAMES_USABLE, file=settings.games_file.name)]


async def check_urls(check: str, urls: Iterable[str], web: Web) -> Check:
    """Ask all sources concurrently. A bad answer is only a warning, since the bot can talk without
    it.
    """
    async with asyncio.TaskGroup() as group:
        asked = [group.create_task(_ask(url, web)) for url in urls]
    troubles = [trouble for task in asked if (trouble := task.result())]
    if not troubles:
        return ok(check, REACHABLE)
    first = troubles[:NAMED]
    named = Bilingual("; ".join(first), "；".join(one.zh for one in first))
    if len(troubles) == len(asked) > 1:
        return warning(
            check,
            NO_HOSTS,
            MEND_NETWORK,
            count=len(asked),
            first=troubles[0],
        )
    if len(troubles) > NAMED:
        return warning(
            check,
            AND_MORE,
            MEND_NETWORK,
            first=named,
            more=len(troubles) - NAMED,
        )
    return warning(check, named, MEND_NETWORK)


async def _ask(url: str, web: Web) -> Bilingual | None:
    """Ask a source; returns what is wrong with it, None if nothing."""
    try:
        response = await web.get(url)
    except ToolFailed as error:
        return text_of(error)
    if response.status == HTTP_OK:
        return None
    host, status = url.split("/")[2], response.status
    return ANSWERED.fill(host=host, status=status)
