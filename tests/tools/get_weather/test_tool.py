"""`get_weather` from the question to the answer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from bot.domain.errors import InvalidArguments, ToolFailed
from bot.domain.ports import Web
from tests.adapters.fetching.replay import Replay, StoppedClock
from tests.tools.get_weather.bodies import (
    BEIJING,
    FORECAST,
    HAMLETS,
    PLACES,
    QUOTA,
    SPRINGFIELDS,
    forecast,
    row,
    rows,
)
from tools.get_weather import get_weather

GetWeather = Callable[..., Awaitable[str]]


def test_the_model_sees_a_city_and_a_unit() -> None:
    schema = get_weather.spec.parameters
    assert schema["required"] == ["city"]
    assert schema["properties"]["unit"]["enum"] == ["celsius", "fahrenheit"]
    assert schema["properties"]["unit"]["default"] == "celsius"
    assert get_weather.needs == (Web,)


async def test_the_weather_of_a_city(server: Replay, ask: GetWeather) -> None:
    server.tell(PLACES, rows(BEIJING), name="北京", language="zh")
    server.tell(FORECAST, forecast())
    answer = await ask(city="北京")
    assert answer.startswith("地点：北京，中国 (39.91, 116.40)\n现在：多云，3.4°C，体感 0°C，")
    assert "明天 11-22：小雪，-4.2°C ~ 2°C，降水概率 80%" in answer
    assert "观测时间：2026-11-21 22:15" in answer
    assert answer.endswith("Weather data by Open-Meteo.com; places by GeoNames")
    assert server.count(PLACES) == server.count(FORECAST) == 1


async def test_an_english_name_in_fahrenheit(server: Replay, ask: GetWeather) -> None:
    beijing = row(1816670, "Beijing", "PPLC", 18960744, country="China", country_code="CN", admin1="Beijing")
    server.tell(PLACES, rows(beijing), name="Beijing", language="en")
    server.tell(FORECAST, forecast())
    answer = await ask(city="Beijing", unit="fahrenheit")
    assert answer.startswith("Place: Beijing, China (39.91, 116.40)\nNow: partly cloudy, 38.1°F, feels like 31.9°F,")


async def test_a_city_behind_misranked_hamlets_is_found_by_its_other_spelling(server: Replay, ask: GetWeather) -> None:
    server.tell(PLACES, rows(*HAMLETS), name="北京")
    server.tell(PLACES, rows(BEIJING), name="北京市")
    server.tell(FORECAST, forecast())
    assert "地点：北京，中国" in await ask(city="北京")


async def test_a_town_does_not_pass_for_the_city_of_the_same_name(server: Replay, ask: GetWeather) -> None:
    town = row(1, "赣州", "PPL", 2000, country="中国", country_code="CN", admin1="湖南")
    city = row(2, "赣州市", "PPLA2", 1977000, country="中国", country_code="CN", admin1="江西")
    server.tell(PLACES, rows(town), name="赣州")
    server.tell(PLACES, rows(city), name="赣州市")
    server.tell(FORECAST, forecast())
    answer = await ask(city="赣州")
    assert "地点：赣州市，江西，中国" in answer
    assert "另有同名地点：赣州，湖南，中国" in answer


async def test_hamlets_alone_are_asked_about_and_no_weather_is_fetched(server: Replay, ask: GetWeather) -> None:
    server.tell(PLACES, rows(*HAMLETS), name="北京")
    server.tell(PLACES, {"generationtime_ms": 0.2}, name="北京市")
    answer = await ask(city="北京")
    assert "1. 北京，重庆市，中国\n2. 北京，成都，四川，中国\n" in answer
    assert server.count(FORECAST) == 0


async def test_springfield_is_ambiguous_until_its_state_is_named(server: Replay, ask: GetWeather) -> None:
    server.tell(PLACES, rows(*SPRINGFIELDS), name="Springfield", language="en")
    server.tell(FORECAST, forecast())
    answer = await ask(city="Springfield")
    assert '"Springfield" may be any of these places' in answer
    assert answer.count("United States") == 5
    assert server.count(FORECAST) == 0
    assert (await ask(city="Springfield, Illinois")).startswith("Place: Springfield, Illinois, United States")


@pytest.mark.parametrize("city", ["没有这个地方", "Nowhere-xyzzy"])
async def test_an_unknown_place_is_told_as_such(server: Replay, ask: GetWeather, city: str) -> None:
    server.tell(PLACES, {"generationtime_ms": 0.2})
    with pytest.raises(ToolFailed, match=r"没有找到“没有这个地方”|There is no place \"Nowhere-xyzzy\""):
        await ask(city=city)
    assert server.count(FORECAST) == 0


async def test_a_city_that_is_none_is_the_models_mistake(server: Replay, ask: GetWeather) -> None:
    with pytest.raises(InvalidArguments):
        await ask(city=" ")
    with pytest.raises(InvalidArguments):
        await ask(city="北京", unit="kelvin")
    assert server.asked == []


@pytest.mark.parametrize(
    ("status", "body"),
    [(429, QUOTA), (400, {"error": True, "reason": "Invalid timezone"}), (500, "oops"), (200, ""), (200, "<html>")],
)
@pytest.mark.parametrize("path", [PLACES, FORECAST])
async def test_a_failure_is_told_and_never_covered_up(
    server: Replay, ask: GetWeather, path: str, status: int, body: Any
) -> None:
    server.tell(PLACES, rows(BEIJING))
    server.tell(FORECAST, forecast())
    server.tell(path, body, status=status)
    with pytest.raises(ToolFailed, match=r"could not be fetched: Open-Meteo .* do not make any up"):
        await ask(city="北京")


async def test_a_slow_service_is_a_failure(server: Replay, ask: GetWeather) -> None:
    server.tell(PLACES, rows(BEIJING))
    server.tell(FORECAST, forecast(), gate=asyncio.Event())
    with pytest.raises(ToolFailed, match=r"api\.open-meteo\.com did not answer within 1 s"):
        await ask(city="北京")


async def test_for_ten_minutes_nothing_is_asked_again(server: Replay, ask: GetWeather, clock: StoppedClock) -> None:
    server.tell(PLACES, rows(BEIJING))
    server.tell(FORECAST, forecast())
    first = await ask(city="北京")
    clock.time += 599
    assert await ask(city="北京天气") == first
    assert "°F" in await ask(city="北京", unit="fahrenheit")
    assert len(server.asked) == 2
    clock.time += 2
    await ask(city="北京")
    assert len(server.asked) == 4


async def test_a_failure_does_not_last(server: Replay, ask: GetWeather) -> None:
    server.tell(PLACES, rows(BEIJING))
    server.tell(FORECAST, QUOTA, status=429)
    with pytest.raises(ToolFailed):
        await ask(city="北京")
    server.tell(FORECAST, forecast())
    assert "3.4°C" in await ask(city="北京")


async def test_a_group_asking_at_once_is_one_question(server: Replay, ask: GetWeather) -> None:
    server.tell(PLACES, rows(BEIJING))
    server.tell(FORECAST, forecast())
    answers: set[str] = set()

    async def one_of_them() -> None:
        answers.add(await ask(city="北京"))

    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        for _ in range(8):
            group.create_task(one_of_them())
    assert len(answers) == 1
    assert len(server.asked) == 2


async def test_the_recorded_misranking_names_no_wrong_place(server: Replay, ask: GetWeather) -> None:
    server.tell_sample(PLACES, "openmeteo_geocode_beijing_zh_misranked", name="北京")
    server.tell_sample(PLACES, "openmeteo_geocode_empty", name="北京市")
    answer = await ask(city="北京")
    assert "不知道是哪一个" in answer
    assert server.count(FORECAST) == 0


async def test_recorded_answers_make_a_weather_report(server: Replay, ask: GetWeather) -> None:
    server.tell_sample(PLACES, "openmeteo_geocode_samara_en")
    server.tell_sample(FORECAST, "openmeteo_forecast_samara_7d")
    answer = await ask(city="Samara")
    assert answer.splitlines()[:3] == [
        "Place: Samara, Samara Oblast, Russia (53.21, 50.14)",
        "Now: overcast, 18.5°C, feels like 18.5°C, humidity 78%, wind E 3.0 m/s",
        "today 09-15: overcast, 13.3°C ~ 19.8°C, chance of rain 30%",
    ]
