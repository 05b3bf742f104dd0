"""QWeather's four answers, of which two are needed."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from adapters.fetching.client import HttpxWeb
from tests.adapters.fetching.replay import Replay
from tests.tools.get_weather.bodies import (
    QWEATHER_HOST,
    QWEATHER_REFUSED,
    qweather_alerts,
    qweather_days,
    qweather_hours,
    qweather_now,
    qweather_path,
)
from tools.get_weather.places import WeatherPlace
from tools.get_weather.qweather import fetch_weather
from tools.get_weather.requests import FOR_GOOD, SourceFailed, WeatherKeys, WeatherQuestion
from tools.get_weather.weather import Weather

BEIJING = WeatherPlace(id=0, name="北京市", latitude=39.904, longitude=116.407, zone="Asia/Shanghai")
KEYS = WeatherKeys(qweather_host=QWEATHER_HOST, qweather_key="sesame")


async def fetch(web: HttpxWeb) -> Weather:
    return (await fetch_weather(WeatherQuestion(place=BEIJING, web=web, keys=KEYS, now=1_000_000))).weather


def tell_all(server: Replay) -> None:
    server.tell(qweather_path("current"), qweather_now())
    server.tell(qweather_path("daily"), qweather_days(), days="7", localTime="true", lang="zh")
    server.tell(qweather_path("hourly"), qweather_hours(), hours="24")
    server.tell(qweather_path("alert"), qweather_alerts("北京市发布大风蓝色预警信号"))


async def test_fractions_become_percent_and_times_local(server: Replay, web: HttpxWeb) -> None:
    tell_all(server)
    weather = await fetch(web)
    now = weather.now
    assert (now.temperature, now.feels_like, now.humidity, now.text, now.code) == (31.71, 33.64, 69, "少云", 1)
    assert (now.wind_speed, now.wind_from) == (4.74, 226)
    assert now.time.isoformat() == "1970-01-12T21:46:40"
    assert [(str(day.date), day.text, day.code, day.low, day.high, day.rain_chance) for day in weather.days] == [
        ("1970-01-12", "暴雨转小雨", 65, 20.5, 42, 64),
        ("1970-01-13", "晴", 0, 20.5, 43, 64),
    ]
    assert [(hour.time.hour, hour.code, hour.text) for hour in weather.hours] == [(22, 3, ""), (23, 3, ""), (0, 3, "")]


async def test_a_warning_says_what_and_until_when(server: Replay, web: HttpxWeb) -> None:
    tell_all(server)
    alerts = (await fetch(web)).alerts
    assert alerts is not None
    [alert] = alerts
    assert alert.title == "北京市发布大风蓝色预警信号"
    assert alert.detail == "北京市发布大风蓝色预警信号，请注意防范。"
    assert str(alert.until) == "1970-01-13 11:19:00"


async def test_the_key_goes_into_a_header_and_never_into_the_url(server: Replay, web: HttpxWeb) -> None:
    tell_all(server)
    await fetch(web)
    assert len(server.asked) == 4
    for asked in server.asked:
        assert asked.headers["X-QW-Api-Key"] == "sesame"
        assert "sesame" not in asked.path + str(asked.query)


async def test_no_warnings_are_not_the_same_as_no_word_of_them(server: Replay, web: HttpxWeb) -> None:
    tell_all(server)
    server.tell(qweather_path("alert"), qweather_alerts())
    assert (await fetch(web)).alerts == ()


async def test_without_hours_and_warnings_it_is_still_an_answer(server: Replay, web: HttpxWeb) -> None:
    tell_all(server)
    server.tell(qweather_path("hourly"), "oops", status=500)
    server.tell(qweather_path("alert"), "<html>")
    weather = await fetch(web)
    assert (weather.hours, weather.alerts) == ((), None)


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (200, ""), (200, "<html>"), (200, {"code": "404"}), (200, {"temperature": {}, "days": [{}]}), (500, "oops"),
        (400, {"error": {"title": "Invalid Parameters"}}), (404, ""), (429, QWEATHER_REFUSED),
    ],
)  # fmt: skip
@pytest.mark.parametrize("what", ["current", "daily"])
async def test_without_now_or_days_it_is_none(server: Replay, web: HttpxWeb, what: str, status: int, body: Any) -> None:
    tell_all(server)
    server.tell(qweather_path(what), body, status=status)
    with pytest.raises(SourceFailed, match="QWeather") as caught:
        await fetch(web)
    assert caught.value.rest <= 60


@pytest.mark.parametrize("status", [401, 403])
async def test_a_refused_key_is_left_alone_for_good(server: Replay, web: HttpxWeb, status: int) -> None:
    for what in ("current", "daily", "hourly", "alert"):
        server.tell(qweather_path(what), QWEATHER_REFUSED, status=status)
    with pytest.raises(SourceFailed, match=f"answered {status}: Unauthorized") as caught:
        await fetch(web)
    assert caught.value.rest == FOR_GOOD


@pytest.mark.parametrize("code", ["401", "402", "403"])
async def test_a_refusal_inside_a_200_is_one_for_good(server: Replay, web: HttpxWeb, code: str) -> None:
    for what in ("current", "daily", "hourly", "alert"):
        server.tell(qweather_path(what), {"code": code})
    with pytest.raises(SourceFailed, match=f"code {code}") as caught:
        await fetch(web)
    assert caught.value.rest == FOR_GOOD


async def test_a_warning_whose_end_has_no_offset_is_told(server: Replay, web: HttpxWeb) -> None:
    tell_all(server)
    body = qweather_alerts("大风蓝色预警")
    body["alerts"][0]["expireTime"] = "1970-01-13T11:19"
    server.tell(qweather_path("alert"), body)
    [alert] = (await fetch(web)).alerts or ()
    assert str(alert.until) == "1970-01-13 11:19:00"


@pytest.mark.parametrize("patience", [0.2])
async def test_a_slow_half_is_a_failure(server: Replay, web: HttpxWeb, patience: float) -> None:
    tell_all(server)
    server.tell(qweather_path("daily"), qweather_days(), gate=asyncio.Event())
    with pytest.raises(SourceFailed, match=f"did not answer within {patience:g} s"):
        await fetch(web)


async def test_recorded_answers_are_read(server: Replay, web: HttpxWeb) -> None:
    server.tell_sample(qweather_path("current"), "qweather_current_v1")
    server.tell_sample(qweather_path("daily"), "qweather_daily_v1")
    weather = await fetch(web)
    assert (weather.now.temperature, weather.now.text) == (31.71, "少云")
    assert [day.text for day in weather.days][:2] == ["小雨转晴间多云", "多云转晴间多云"]
    assert weather.days[0].rain_chance == pytest.approx(64)


async def test_the_recorded_error_is_one(server: Replay, web: HttpxWeb) -> None:
    server.tell_sample(qweather_path("current"), "qweather_error_400")
    with pytest.raises(SourceFailed, match="answered 400: Invalid Parameters"):
        await fetch(web)
