"""The tools' sources, at a server of ours in their place."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web

from adapters.fetching.client import HttpxWeb
from bot import configured_tools
from bot.cli.checks import Outcome
from bot.cli.doctor.tools import check_documents, check_games, check_search, check_versions, check_weather
from bot.configured_tools import search_hosts
from config.settings import Settings
from frostagent.clock import SystemClock
from tests.bot.cli.doctor.surroundings import HOSTS, answering
from tests.tools.get_weather.bodies import AMAP_BAD_KEY, QWEATHER_HOST, amap_casts, amap_live, met
from tools.get_weather.requests import WeatherKeys


@asynccontextmanager
async def at(root: str) -> AsyncIterator[HttpxWeb]:
    hosts = HOSTS | {QWEATHER_HOST, "restapi.amap.com", "api.met.no"}
    port = HttpxWeb(clock=SystemClock(), user_agent="test", base_urls=dict.fromkeys(hosts, root))
    try:
        yield port
    finally:
        await port.aclose()


async def test_each_host_is_asked_once() -> None:
    asked: list[str] = []

    def answer(request: web.BaseRequest) -> web.Response:
        asked.append(request.path)
        return web.json_response({})

    async with answering(answer) as root, at(root) as port:
        checks = [*await check_weather(port), *await check_versions(port)]
    assert [(check.name, check.outcome) for check in checks] == [("weather", Outcome.OK), ("versions", Outcome.OK)]
    assert len(asked) == len(HOSTS)


async def test_a_source_that_cannot_be_reached_is_a_warning_that_names_it() -> None:
    async with at("http://127.0.0.1:9") as port:
        (check,) = await check_weather(port)
    assert check.outcome is Outcome.WARNING
    assert "api.open-meteo.com could not be reached" in check.said
    assert "TOOLS_MIRRORS" in check.fix


async def test_a_source_with_a_key_is_asked_with_it_and_what_it_refuses_is_told() -> None:
    keys = WeatherKeys(qweather_host=QWEATHER_HOST, qweather_key="sesame-q", amap_key="sesame-a", contact=True)

    def answer(request: web.BaseRequest) -> web.Response:
        match request.query.get("extensions"):
            case "base":
                return web.json_response(amap_live())
            case "all":
                return web.json_response(amap_casts())
            case _ if "locationforecast" in request.path:
                return web.json_response(met())
            case _:
                return web.json_response({"code": "401"})

    async with answering(answer) as root, at(root) as port:
        free, qweather, amap, norway = await check_weather(port, keys=keys, now=1e6)
    assert [check.outcome for check in (free, amap, norway)] == [Outcome.OK] * 3
    assert amap.said == "高德 AMap answers"
    assert qweather.outcome is Outcome.WARNING
    assert "code 401" in qweather.said
    assert "docs/weather.md" in qweather.fix
    async with answering(lambda _: web.json_response(AMAP_BAD_KEY)) as root, at(root) as port:
        (_, refused) = await check_weather(port, keys=WeatherKeys(amap_key="sesame-a"))
    assert "INVALID_USER_KEY" in refused.said
    assert "sesame" not in refused.said


def test_a_bad_row_of_the_operators_games_is_a_warning_and_a_good_file_is_well(tmp_path: Path) -> None:
    file = tmp_path / "games.toml"
    row = '[[game]]\nkey = "a"\nzh = "甲"\nen = "A"\nsources = [{ kind = "steam", app = %s }]\n'
    file.write_text(row % "1" + (row % '"x"').replace('"a"', '"b"'), "utf-8")
    (check,) = check_games(Settings(games_file=file), clock=SystemClock())
    assert check.outcome is Outcome.WARNING
    assert "row 2 (b)" in check.said
    assert "docs/games.md" in check.fix
    file.write_text(row % "1", "utf-8")
    (check,) = check_games(Settings(games_file=file), clock=SystemClock())
    assert check.outcome is Outcome.OK
    assert check_games(Settings(), clock=SystemClock()) == []


async def test_a_source_that_refuses_is_a_warning() -> None:
    async with answering(lambda _: web.Response(status=503)) as root, at(root) as port:
        (check,) = await check_versions(port)
    assert check.outcome is Outcome.WARNING
    assert "answered 503" in check.said


async def test_offline_one_line_names_how_many_hosts_and_one_of_them() -> None:
    async with at("http://127.0.0.1:9") as port:
        (check,) = await check_versions(port)
    assert "none of its " in check.said
    assert check.said.count("could not be reached") == 1
    assert len(check.said) < 200


async def test_of_many_sources_that_fail_three_are_named() -> None:
    """One in three answers."""
    asked: list[str] = []

    def answer(request: web.BaseRequest) -> web.Response:
        asked.append(request.path)
        return web.json_response({}, status=200 if len(asked) % 3 == 0 else 503)

    async with answering(answer) as root, at(root) as port:
        (check,) = await check_versions(port)
    failed = len(asked) - len(asked) // 3
    assert failed > 3
    assert check.said.count("answered 503") == 3
    assert check.said.endswith(f"; and {failed - 3} more")


async def test_the_search_service_is_asked_once_and_named_with_its_price() -> None:
    asked: list[str] = []

    def answer(request: web.BaseRequest) -> web.Response:
        asked.append(request.path_qs)
        return web.json_response({"results": []})

    async with answering(answer) as root:
        settings = Settings(search_url=f"{root}/searx", search_price=8.0)
        port = HttpxWeb(clock=SystemClock(), user_agent="test", base_urls=search_hosts(settings))
        check, *_ = await check_search(settings, port)
        unpriced, *_ = await check_search(settings.model_copy(update={"search_price": 0.0}), port)
        await port.aclose()
    assert (check.outcome, check.said) == (Outcome.OK, "SearXNG answers, $8 for 1,000 searches")
    assert unpriced.said.zh == "SearXNG 有答复，不计价（没有设 SEARCH_PRICE）"
    assert [path.partition("?")[0] for path in asked] == ["/searx/search"] * 2


async def test_a_search_that_is_refused_or_half_set_up_is_a_warning_and_one_that_is_off_is_well() -> None:
    async with answering(lambda _: web.Response(status=403)) as root:
        settings = Settings(search_url=root)
        port = HttpxWeb(clock=SystemClock(), user_agent="test", base_urls=search_hosts(settings))
        refused, *_ = await check_search(settings, port)
        half, *_ = await check_search(Settings.model_validate({"search_key": "who-knows"}), port)
        (off,) = await check_search(Settings(), port)
        await port.aclose()
    assert refused.outcome is Outcome.WARNING
    assert "search.formats" in refused.said
    assert "docs/web.md" in refused.fix
    assert half.outcome is Outcome.WARNING
    assert half.said == "cannot be used: it needs SEARCH_KIND: SEARCH_KEY does not show whose it is"
    assert (off.outcome, off.said) == (Outcome.OK, "off: it needs SEARCH_URL or SEARCH_KEY, and neither is set")


async def test_a_service_without_a_key_is_asked_when_the_settings_name_it() -> None:
    page = '<div class="result"><a class="result__a" href="https://a.example/">A</a></div>'
    async with answering(lambda _: web.Response(text=page, content_type="text/html")) as root:
        settings = Settings(search_kind="ddgs", tools_mirrors={"html.duckduckgo.com": root})
        port = HttpxWeb(clock=SystemClock(), user_agent="test", base_urls=search_hosts(settings))
        check, *_ = await check_search(settings, port)
        await port.aclose()
    assert (check.outcome, check.said) == (Outcome.OK, "DuckDuckGo answers, at no price (SEARCH_PRICE is not set)")


async def test_a_service_without_a_key_that_turns_programs_away_is_a_warning() -> None:
    async with answering(lambda _: web.Response(status=202)) as root:
        settings = Settings(search_kind="ddgs", tools_mirrors={"html.duckduckgo.com": root})
        port = HttpxWeb(clock=SystemClock(), user_agent="test", base_urls=search_hosts(settings))
        check, *_ = await check_search(settings, port)
        await port.aclose()
    assert check.outcome is Outcome.WARNING
    assert "DuckDuckGo 暂时不让程序搜索" in check.said.zh


async def test_without_the_libraries_that_read_pages_the_doctor_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(configured_tools, "find_spec", lambda _: None)
    port = HttpxWeb(clock=SystemClock(), user_agent="test", base_urls={})
    _, told = await check_search(Settings(search_kind="none"), port)
    await port.aclose()
    assert (told.outcome, told.said) == (Outcome.WARNING, "pages cannot be read")
    assert "requirements-web.txt" in told.fix
    assert "EXTRAS=web" in told.fix


def test_the_doctor_says_which_files_of_people_can_be_read_and_what_to_install_for_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(configured_tools, "find_spec", lambda _: object())
    (check,) = check_documents()
    assert (check.outcome, "PDFs and e-books that people send can be read" in check.said) == (Outcome.OK, True)
    monkeypatch.setattr(configured_tools, "find_spec", lambda _: None)
    (check,) = check_documents()
    assert (check.outcome, "EXTRAS=web" in check.said) == (Outcome.OK, True)
    assert check.said.zh.startswith("大家发的文本和 Office 文档能读")
