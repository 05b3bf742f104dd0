"""The order of the sources, and what is remembered of them."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from email.utils import formatdate

import pytest

from adapters.fetching.client import HttpxWeb
from frostagent.types.errors import ToolFailed
from tests.adapters.fetching.replay import Replay, StoppedClock
from tests.tools.get_weather.bodies import (
    AMAP,
    AMAP_BAD_KEY,
    FORECAST,
    MET,
    QUOTA,
    QWEATHER_HOST,
    QWEATHER_REFUSED,
    amap_casts,
    amap_live,
    forecast,
    met,
    met_step,
    qweather_days,
    qweather_now,
    qweather_path,
    wttr,
    wttr_path,
)
from tools.get_weather.places import WeatherPlace
from tools.get_weather.requests import WeatherKeys
from tools.get_weather.sources import GEOCODING, SOURCES, STALE, WeatherSources

BEIJING = WeatherPlace(id=0, name="北京市", latitude=39.904, longitude=116.407, zone="Asia/Shanghai", adcode="110000")
OSLO = WeatherPlace(id=1, name="Oslo", latitude=59.91, longitude=10.75, zone="Europe/Oslo")
ALL = WeatherKeys(qweather_host=QWEATHER_HOST, qweather_key="sesame-q", amap_key="sesame-a", contact=True)
PATHS = (qweather_path("current"), AMAP, FORECAST, MET, wttr_path())
NAMES = [source.name for source in SOURCES]


@pytest.fixture
def all_of_them(web: HttpxWeb, clock: StoppedClock) -> WeatherSources:
    return WeatherSources(web=web, clock=clock, keys=ALL)


def tell_all(server: Replay) -> None:
    server.tell(qweather_path("current"), qweather_now())
    server.tell(qweather_path("daily"), qweather_days())
    server.tell(AMAP, amap_live(), extensions="base")
    server.tell(AMAP, amap_casts(), extensions="all")
    server.tell(FORECAST, forecast())
    server.tell(MET, met())
    server.tell(wttr_path(), wttr())


def test_the_order_is_the_one_documented() -> None:
    assert NAMES == ["和风天气 QWeather", "高德 AMap", "Open-Meteo", "MET Norway", "wttr.in"]


@pytest.mark.parametrize("failing", range(5))
async def test_the_next_source_is_asked_where_one_fails(
    server: Replay, all_of_them: WeatherSources, failing: int
) -> None:
    tell_all(server)
    for path in PATHS[:failing]:
        server.tell(path, "oops", status=500)
    found = await all_of_them.look_up(BEIJING)
    assert found.weather.source == NAMES[failing]
    assert (found.age, found.is_stale) == (0, False)
    assert all(server.count(path) >= 1 for path in PATHS[: failing + 1])
    assert all(server.count(path) == 0 for path in PATHS[failing + 1 :])


async def test_when_all_fail_each_is_named_and_no_key(server: Replay, all_of_them: WeatherSources) -> None:
    for what in ("current", "daily", "hourly", "alert"):
        server.tell(qweather_path(what), QWEATHER_REFUSED, status=401)
    server.tell(AMAP, AMAP_BAD_KEY)
    server.tell(FORECAST, QUOTA, status=429)
    server.tell(MET, "<html>")
    server.tell(wttr_path(), "Unknown location; please try ~39.9,116.4")
    with pytest.raises(ToolFailed) as caught:
        await all_of_them.look_up(BEIJING)
    told = str(caught.value)
    assert all(name in told for name in NAMES)
    assert "sesame" not in told


async def test_without_keys_only_the_open_sources_are_asked(server: Replay, sources: WeatherSources) -> None:
    with pytest.raises(ToolFailed, match=r"^Open-Meteo answered 404; wttr\.in answered 404$"):
        await sources.look_up(BEIJING)
    assert {asked.path for asked in server.asked} == {FORECAST, wttr_path()}


async def test_amap_is_asked_about_china_only(server: Replay, all_of_them: WeatherSources) -> None:
    with pytest.raises(ToolFailed):
        await all_of_them.look_up(OSLO)
    with pytest.raises(ToolFailed):
        await all_of_them.look_up(replace(BEIJING, adcode="710100", latitude=25.0))
    assert server.count(AMAP) == 0
    assert server.count(MET) == 2


async def test_for_ten_minutes_an_answer_is_new(server: Replay, sources: WeatherSources, clock: StoppedClock) -> None:
    tell_all(server)
    first = await sources.look_up(BEIJING)
    clock.time += 599
    second = await sources.look_up(replace(BEIJING, name="北京", latitude=39.9041))
    assert (second.weather, second.age, second.is_stale) == (first.weather, 599, False)
    assert len(server.asked) == 1
    clock.time += 2
    assert (await sources.look_up(BEIJING)).age == 0
    assert len(server.asked) == 2


async def test_met_norway_is_new_until_it_expires(server: Replay, web: HttpxWeb, clock: StoppedClock) -> None:
    modified = formatdate(clock.time - 60, usegmt=True)
    dated = {"Expires": formatdate(clock.time + 3000, usegmt=True), "Last-Modified": modified}
    server.tell(MET, met(), headers=dated)
    only = tuple(source for source in SOURCES if source.name == "MET Norway")
    norway = WeatherSources(web=web, clock=clock, keys=ALL, sources=only)
    await norway.look_up(OSLO)
    clock.time += 2999
    await norway.look_up(OSLO)
    assert len(server.asked) == 1
    clock.time += 2
    server.tell(MET, b"", status=304)
    await norway.look_up(OSLO)
    found = await norway.look_up(OSLO)
    assert server.asked[1].headers["If-Modified-Since"] == modified
    assert (found.weather.now.temperature, found.now_there.isoformat()) == (2.5, "1970-01-12T15:36:41")


async def test_what_is_kept_of_met_norway_is_told_as_of_now(server: Replay, web: HttpxWeb, clock: StoppedClock) -> None:
    server.tell(MET, met(), headers={"Expires": formatdate(clock.time + 9000, usegmt=True)})
    only = tuple(source for source in SOURCES if source.name == "MET Norway")
    norway = WeatherSources(web=web, clock=clock, keys=ALL, sources=only)
    assert (await norway.look_up(OSLO)).weather.now.temperature == 3.1
    clock.time += 7000
    assert (await norway.look_up(OSLO)).weather.now.temperature == 1.5
    server.tell(MET, "oops", status=500)
    clock.time += 3500
    stale = await norway.look_up(OSLO)
    assert (stale.is_stale, stale.weather.now.time.hour) == (True, 16)
    assert len(server.asked) == 2


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (MET, met(met_step("9999-12-31T23:59:59Z", 1.0), met_step("0001-01-01T00:00:00Z", 1.0))),
        (MET, met(met_step("1970-01-12T13:00:00", 1.0))),
        (qweather_path("daily"), {"days": [{"forecastStartTime": "9999-12-31T23:00+08:00"}]}),
        (qweather_path("hourly"), {"hours": [{"forecastTime": "0001-01-01T00:00+14:00", "temperature": {"value": 1}}]}),
    ],
)
async def test_garbled_times_never_keep_the_next_source_from_being_asked(
    server: Replay, web: HttpxWeb, clock: StoppedClock, path: str, body: object
) -> None:
    tell_all(server)
    server.tell(path, body)
    rows = tuple(source for source in SOURCES if source.name in {"MET Norway", "和风天气 QWeather", "wttr.in"})
    rows = rows[1:] if path == MET else rows
    sources = WeatherSources(web=web, clock=clock, keys=ALL, sources=rows)
    found = await sources.look_up(replace(BEIJING, zone="America/New_York"))
    assert found.weather.source == ("wttr.in" if path == MET else "MET Norway")


async def test_a_day_that_is_wanted_is_looked_for_in_every_source(
    server: Replay, web: HttpxWeb, clock: StoppedClock
) -> None:
    tell_all(server)
    sources = WeatherSources(web=web, clock=clock, keys=replace(ALL, amap_key=""))
    found = await sources.look_up(BEIJING, last=lambda today: today.replace(day=13))
    assert found.weather.source == "和风天气 QWeather + Open-Meteo"  # QWeather told no hours
    assert found.weather.hours
    assert server.count(MET) == 0
    assert (await sources.look_up(BEIJING)).weather.source == "和风天气 QWeather"
    far = await sources.look_up(BEIJING, last=lambda today: today.replace(year=2999))
    assert far.weather.source.startswith("和风天气 QWeather + Open-Meteo")
    assert server.count(wttr_path()) == 1


async def test_filling_up_takes_no_more_than_its_share_of_time(
    server: Replay, all_of_them: WeatherSources, monkeypatch: pytest.MonkeyPatch
) -> None:
    tell_all(server)
    server.tell(AMAP, amap_live(), extensions="base", gate=asyncio.Event())
    monkeypatch.setattr("tools.get_weather.sources.FILL_SECONDS", 0.05)
    async with asyncio.timeout(0.9):
        found = await all_of_them.look_up(BEIJING, last=lambda today: today.replace(day=13))
    assert found.weather.source == "和风天气 QWeather"


async def test_what_is_old_is_given_with_its_age_when_nobody_answers(
    server: Replay, sources: WeatherSources, clock: StoppedClock
) -> None:
    tell_all(server)
    first = await sources.look_up(BEIJING)
    server.tell(FORECAST, "oops", status=503)
    server.tell(wttr_path(), "oops", status=503)
    clock.time += STALE - 1
    stale = await sources.look_up(BEIJING)
    assert (stale.weather, stale.age, stale.is_stale) == (first.weather, STALE - 1, True)
    clock.time += 2
    with pytest.raises(ToolFailed):
        await sources.look_up(BEIJING)


async def test_another_source_is_better_than_what_is_old(
    server: Replay, sources: WeatherSources, clock: StoppedClock
) -> None:
    tell_all(server)
    await sources.look_up(BEIJING)
    server.tell(FORECAST, "oops", status=503)
    clock.time += 700
    found = await sources.look_up(BEIJING)
    assert (found.weather.source, found.is_stale) == ("wttr.in", False)


async def test_a_source_that_failed_is_left_alone_for_a_minute(
    server: Replay, sources: WeatherSources, clock: StoppedClock
) -> None:
    server.tell(FORECAST, "oops", status=500)
    for _ in range(2):
        with pytest.raises(ToolFailed):
            await sources.look_up(BEIJING)
    assert server.count(FORECAST) == 1
    clock.time += 61
    tell_all(server)
    assert (await sources.look_up(BEIJING)).weather.source == "Open-Meteo"


async def test_a_refused_key_is_not_tried_again(
    server: Replay, all_of_them: WeatherSources, clock: StoppedClock
) -> None:
    tell_all(server)
    server.tell(qweather_path("current"), QWEATHER_REFUSED, status=403)
    server.tell(AMAP, AMAP_BAD_KEY)
    await all_of_them.look_up(BEIJING)
    clock.time += 7 * 86400
    await all_of_them.look_up(BEIJING)
    assert server.count(qweather_path("current")) == 1
    assert server.count(AMAP) == 2  # its two halves, once


async def test_a_place_nobody_knows_does_not_rest_a_source(server: Replay, sources: WeatherSources) -> None:
    tell_all(server)
    server.tell(FORECAST, {"error": True, "reason": "Latitude must be in range"}, status=400, latitude="59.9100")
    with pytest.raises(ToolFailed):
        await sources.look_up(OSLO)
    assert (await sources.look_up(BEIJING)).weather.source == "Open-Meteo"


async def test_no_host_is_asked_more_often_than_its_row_allows(
    server: Replay, web: HttpxWeb, clock: StoppedClock
) -> None:
    tell_all(server)
    row = replace(next(source for source in SOURCES if source.name == "Open-Meteo"), burst=3, a_minute=1)
    sources = WeatherSources(web=web, clock=clock, sources=(row,))
    for number in range(3):
        await sources.look_up(replace(OSLO, latitude=float(number)))
    with pytest.raises(ToolFailed, match="was asked too often"):
        await sources.look_up(replace(OSLO, latitude=4.0))
    clock.time += 60
    await sources.look_up(replace(OSLO, latitude=4.0))
    assert server.count(FORECAST) == 4


async def test_the_geocoder_has_its_share_too(sources: WeatherSources, clock: StoppedClock) -> None:
    for _ in range(GEOCODING[0]):
        sources.spend_geocoding()
    with pytest.raises(ToolFailed, match="asked too often"):
        sources.spend_geocoding()
    clock.time += 60
    sources.spend_geocoding()


async def test_a_hundred_equal_questions_are_one_request(server: Replay, web: HttpxWeb, clock: StoppedClock) -> None:
    """One request, and one of the allowance, though all hundred begin before the answer is there."""
    gate = asyncio.Event()
    server.tell(FORECAST, forecast(), gate=gate)
    row = replace(next(source for source in SOURCES if source.name == "Open-Meteo"), burst=1, a_minute=0)
    sources = WeatherSources(web=web, clock=clock, sources=(row,))
    async with asyncio.timeout(30), asyncio.TaskGroup() as group:
        tasks = [group.create_task(sources.look_up(BEIJING)) for _ in range(100)]
        await server.arrived.wait()
        gate.set()
    assert len({id(task.result().weather.source) for task in tasks}) == 1
    assert {task.result().weather.now.temperature for task in tasks} == {3.4}
    assert server.count(FORECAST) == 1


async def test_a_hundred_equal_questions_share_a_failure(server: Replay, sources: WeatherSources) -> None:
    gate = asyncio.Event()
    server.tell(FORECAST, "oops", status=500, gate=gate)
    failed: list[str] = []

    async def one_of_them() -> None:
        with pytest.raises(ToolFailed) as caught:
            await sources.look_up(BEIJING)
        failed.append(str(caught.value))

    async with asyncio.timeout(30), asyncio.TaskGroup() as group:
        for _ in range(100):
            group.create_task(one_of_them())
        await server.arrived.wait()
        gate.set()
    assert len(failed) == 100
    assert server.count(FORECAST) == 1
