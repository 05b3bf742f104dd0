"""AMap's answers, the good and the odd."""

from __future__ import annotations

from typing import Any

import pytest

from adapters.fetching.client import HttpxWeb
from tests.adapters.fetching.replay import Replay
from tests.tools.get_weather.bodies import AMAP, AMAP_BAD_KEY, amap_casts, amap_live
from tools.get_weather.amap import fetch_weather
from tools.get_weather.places import WeatherPlace
from tools.get_weather.requests import A_DAY, FOR_GOOD, SourceFailed, WeatherKeys, WeatherQuestion
from tools.get_weather.weather import Weather

CHAOYANG = WeatherPlace(id=0, name="朝阳区", latitude=39.92, longitude=116.44, zone="Asia/Shanghai", adcode="110105")


async def fetch(web: HttpxWeb) -> Weather:
    keys = WeatherKeys(amap_key="sesame")
    return (await fetch_weather(WeatherQuestion(place=CHAOYANG, web=web, keys=keys, now=0))).weather


def tell(server: Replay, live: Any, casts: Any, status: int = 200) -> None:
    server.tell(AMAP, live, status=status, extensions="base", city="110105", key="sesame")
    server.tell(AMAP, casts, status=status, extensions="all", city="110105", key="sesame")


async def test_now_and_four_days(server: Replay, web: HttpxWeb) -> None:
    tell(server, amap_live(), amap_casts())
    weather = await fetch(web)
    now = weather.now
    assert (now.temperature, now.humidity, now.code, now.text, now.wind_from, now.force) == (4, 52, 3, "阴", 45, "≤3")
    assert now.time.isoformat() == "2026-11-21T22:03:12"
    assert [(day.text, day.code, day.low, day.high) for day in weather.days] == [
        ("晴", 0, -2, 9),
        ("小雪转多云", 71, -2, 9),
        ("阴", 3, -2, 9),
        ("晴", 0, -2, 9),
    ]
    assert len(server.asked) == 2


async def test_an_empty_figure_may_be_a_list(server: Replay, web: HttpxWeb) -> None:
    tell(server, amap_live(humidity=[], winddirection=[], windpower=[], weather=[]), amap_casts())
    now = (await fetch(web)).now
    assert (now.humidity, now.wind_from, now.force, now.text, now.code) == (None, None, "", "", None)


@pytest.mark.parametrize(
    ("code", "rest"), [("10001", FOR_GOOD), ("10009", FOR_GOOD), ("10003", A_DAY / 2), ("10004", 60), ("20000", 0)]
)
async def test_an_error_inside_a_200_says_what_to_do(server: Replay, web: HttpxWeb, code: str, rest: float) -> None:
    tell(server, AMAP_BAD_KEY | {"infocode": code}, amap_casts())
    with pytest.raises(SourceFailed, match=f"INVALID_USER_KEY \\({code}\\)") as caught:
        await fetch(web)
    assert caught.value.rest == rest


@pytest.mark.parametrize(
    ("body", "words"),
    [({}, r"cannot be read$"), ({"code": "10044"}, r"refused: \(10044\)$"), ({"code": 7}, r"refused: \(7\)$")],
)
async def test_an_undocumented_body_in_a_200_is_told_by_its_code(
    server: Replay, web: HttpxWeb, body: Any, words: str
) -> None:
    tell(server, body, amap_casts())
    with pytest.raises(SourceFailed, match=words):
        await fetch(web)


@pytest.mark.parametrize(
    ("status", "live"),
    [
        (200, ""), (200, "<html>"), (200, {"status": "1"}), (200, amap_live() | {"lives": []}),
        (200, amap_live(temperature="[]")), (200, amap_live(reporttime="2026-11-21T22:03:12Z")),
        (200, amap_live() | {"lives": [[]]}), (500, "oops"), (403, ""), (404, ""),
    ],
)  # fmt: skip
async def test_anything_else_is_a_failure_that_names_no_key(
    server: Replay, web: HttpxWeb, status: int, live: Any
) -> None:
    tell(server, live, amap_casts(), status)
    with pytest.raises(SourceFailed, match="AMap") as caught:
        await fetch(web)
    assert "sesame" not in str(caught.value)


async def test_half_an_answer_is_none(server: Replay, web: HttpxWeb) -> None:
    tell(server, amap_live(), amap_casts() | {"forecasts": []})
    with pytest.raises(SourceFailed, match="has nothing for this place") as caught:
        await fetch(web)
    assert caught.value.rest == 0


async def test_recorded_answers_are_read(server: Replay, web: HttpxWeb) -> None:
    server.tell_sample(AMAP, "amap_weather_base", extensions="base")
    server.tell_sample(AMAP, "amap_weather_all", extensions="all")
    weather = await fetch(web)
    assert (weather.now.temperature, weather.days[0].low, weather.days[0].high) == (24, 12, 25)


async def test_the_recorded_error_is_one(server: Replay, web: HttpxWeb) -> None:
    server.tell_sample(AMAP, "amap_error_key")
    with pytest.raises(SourceFailed, match="10001"):
        await fetch(web)
