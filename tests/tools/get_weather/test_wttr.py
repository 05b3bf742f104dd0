"""wttr.in's answers, the good and the odd."""

from __future__ import annotations

from typing import Any

import pytest

from adapters.fetching.client import HttpxWeb
from tests.adapters.fetching.replay import Replay
from tests.tools.get_weather.bodies import wttr, wttr_path
from tools.get_weather.places import WeatherPlace
from tools.get_weather.requests import SourceFailed, WeatherKeys, WeatherQuestion
from tools.get_weather.weather import Weather
from tools.get_weather.wttr import fetch_weather

SOMEWHERE = WeatherPlace(id=0, name="北京", latitude=39.904, longitude=116.407, zone="Asia/Shanghai")


async def fetch(web: HttpxWeb) -> Weather:
    return (await fetch_weather(WeatherQuestion(place=SOMEWHERE, web=web, keys=WeatherKeys(), now=1_000_000))).weather


@pytest.mark.parametrize("wrapped", [False, True])
async def test_figures_are_read_from_texts_wrapped_or_not(server: Replay, web: HttpxWeb, wrapped: bool) -> None:
    server.tell(wttr_path(), {"data": wttr()} if wrapped else wttr(), format="j1")
    weather = await fetch(web)
    now = weather.now
    assert (now.temperature, now.feels_like, now.humidity, now.code) == (4, 0, 58, 3)
    assert now.wind_speed == pytest.approx(10)
    assert now.time.isoformat() == "2026-11-21T22:37:00"
    assert [(day.low, day.high, day.code, day.rain_chance) for day in weather.days] == [
        (1, 11, 80, 10),
        (-6, 9, None, None),
    ]
    assert [hour.time.hour for hour in weather.hours] == list(range(0, 24, 3))
    assert weather.hours[4].code == 80


async def test_without_a_time_of_its_own_it_is_now(server: Replay, web: HttpxWeb) -> None:
    server.tell(wttr_path(), wttr(current_condition=[{"temp_C": "4", "localObsDateTime": "soon"}]))
    assert (await fetch(web)).now.time.isoformat() == "1970-01-12T21:46:40"


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (200, "Unknown location; please try ~39.9,116.4"), (200, ""), (200, {}), (200, "<html>"), (200, {"data": {}}),
        (200, wttr(current_condition=[])), (200, wttr(current_condition=[{"temp_C": "hot"}])), (503, "busy"), (500, ""),
        (404, "?"), (429, ""),
    ],
)  # fmt: skip
async def test_anything_else_is_a_failure(server: Replay, web: HttpxWeb, status: int, body: Any) -> None:
    server.tell(wttr_path(), body, status=status)
    with pytest.raises(SourceFailed, match=r"wttr\.in"):
        await fetch(web)


async def test_the_recorded_answer_is_read(server: Replay, web: HttpxWeb) -> None:
    server.tell_sample(wttr_path(), "wttr_j1_latlon")
    weather = await fetch(web)
    assert (weather.now.temperature, weather.now.code, len(weather.days), len(weather.hours)) == (9, 3, 3, 24)


async def test_the_recorded_failure_is_one(server: Replay, web: HttpxWeb) -> None:
    server.tell_sample(wttr_path(), "wttr_unknown_location")
    with pytest.raises(SourceFailed, match="cannot be read"):
        await fetch(web)
