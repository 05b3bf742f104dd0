"""`get_weather` from the question to the answer."""

from __future__ import annotations

import asyncio
import datetime as dt
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from bot.core.ports import Web
from frostagent.types.errors import InvalidArguments, ToolFailed
from tests.adapters.fetching.replay import Replay, StoppedClock
from tests.tools.get_weather.bodies import (
    AMAP,
    BEIJING,
    FORECAST,
    HAMLETS,
    PLACES,
    QUOTA,
    QWEATHER_HOST,
    SPRINGFIELDS,
    amap_casts,
    amap_live,
    forecast,
    qweather_alerts,
    qweather_days,
    qweather_hours,
    qweather_now,
    qweather_path,
    row,
    rows,
    wttr,
    wttr_path,
)
from tools.get_weather import get_weather
from tools.get_weather.requests import WeatherKeys
from tools.get_weather.sources import WeatherSources

GetWeather = Callable[..., Awaitable[str]]

HEIDELBERG = row(2907911, "海德堡", "PPLA2", 143345, country="德国", country_code="DE", admin1="巴登-符腾堡州")
BEIJING_HERE = "北京市 (39.90, 116.41)"


EVENING = dt.datetime(2026, 11, 21, 14, 20, tzinfo=dt.UTC).timestamp()  # 22:20 in Beijing, as the bodies have it


@pytest.fixture
def clock() -> StoppedClock:
    clock = StoppedClock()
    clock.time = EVENING
    return clock


def test_the_model_sees_a_city_and_what_may_be_left_out() -> None:
    schema = get_weather.spec.parameters
    assert schema["required"] == ["city"]
    assert list(schema["properties"]) == ["city", "day", "days", "units", "picture"]
    assert schema["properties"]["units"]["enum"] == ["metric", "imperial"]
    assert (schema["properties"]["days"]["minimum"], schema["properties"]["days"]["maximum"]) == (1, 7)
    assert get_weather.needs == (Web, WeatherSources)


# --- places ---------------------------------------------------------------------------------------


async def test_a_place_of_the_table_is_asked_of_no_geocoder(server: Replay, ask: GetWeather) -> None:
    server.tell(FORECAST, forecast(), latitude="39.9040", longitude="116.4070")
    answer = await ask(city="北京")
    assert answer.startswith(f"地点：{BEIJING_HERE}\n现在：多云，3.4°C，体感 0°C，")
    assert "逐时：23 时" not in answer
    assert "明天 11-22：小雪，-4.2°C ~ 2°C，降水概率 80%" in answer
    assert "观测时间：2026-11-21 22:15（当地时间 Asia/Shanghai）\n来源：Open-Meteo\n" in answer
    assert answer.endswith("Weather data by Open-Meteo.com; places by GeoNames")
    assert (server.count(PLACES), server.count(FORECAST)) == (0, 1)


async def test_the_resolved_path_is_always_printed(server: Replay, ask: GetWeather) -> None:
    server.tell(FORECAST, forecast())
    assert (await ask(city="江苏南京鼓楼")).startswith("地点：江苏省南京市鼓楼区 (32.07, 118.77)")
    assert (await ask(city="Hohhot")).startswith(
        "Place: Hohhot, Inner Mongolia, China (内蒙古自治区呼和浩特市) (40.84, "
    )


@pytest.mark.parametrize(
    ("city", "first"), [("朝阳", "1. 辽宁省朝阳市\n2. 北京市朝阳区\n"), ("鼓楼", "1. 江苏省南京市鼓楼区\n")]
)
async def test_an_ambiguous_place_is_asked_about_and_no_weather_is_fetched(
    server: Replay, ask: GetWeather, city: str, first: str
) -> None:
    answer = await ask(city=city)
    assert "不知道是哪一个，没有查天气" in answer
    assert first in answer
    assert server.asked == []


async def test_a_province_is_too_large(server: Replay, ask: GetWeather) -> None:
    assert "“广东”范围太大" in await ask(city="广东")
    assert server.asked == []


async def test_a_place_the_table_does_not_know_is_looked_up(server: Replay, ask: GetWeather) -> None:
    server.tell(PLACES, rows(HEIDELBERG), name="海德堡", language="zh")
    server.tell(FORECAST, forecast())
    assert (await ask(city="海德堡")).startswith("地点：海德堡，巴登-符腾堡州，德国 (39.91, 116.40)")
    assert server.count(PLACES) == server.count(FORECAST) == 1


async def test_an_english_name_in_imperial_units(server: Replay, ask: GetWeather) -> None:
    paris = row(2988507, "Paris", "PPLC", 2138551, country="France", country_code="FR", admin1="Île-de-France")
    server.tell(PLACES, rows(paris), name="Paris", language="en")
    server.tell(FORECAST, forecast())
    for units in ("imperial", "Fahrenheit"):
        answer = await ask(city="Paris", units=units)
        assert answer.startswith(
            "Place: Paris, Île-de-France, France (39.91, 116.40)\nNow: partly cloudy, 38.1°F, feels"
        )


async def test_a_city_behind_misranked_hamlets_is_found_by_its_other_spelling(server: Replay, ask: GetWeather) -> None:
    hamlet = row(1, "海德堡", "PPL", country="中国", country_code="CN", admin1="重庆市")
    server.tell(PLACES, rows(hamlet), name="海德堡")
    server.tell(PLACES, rows({**HEIDELBERG, "name": "海德堡市"}), name="海德堡市")
    server.tell(FORECAST, forecast())
    assert "地点：海德堡市，巴登-符腾堡州，德国" in await ask(city="海德堡")


async def test_hamlets_alone_are_asked_about_and_no_weather_is_fetched(server: Replay, ask: GetWeather) -> None:
    hamlets = [{**hamlet, "name": "海德堡"} for hamlet in HAMLETS]
    server.tell(PLACES, rows(*hamlets), name="海德堡")
    server.tell(PLACES, {"generationtime_ms": 0.2}, name="海德堡市")
    answer = await ask(city="海德堡")
    assert "1. 海德堡，重庆市，中国\n2. 海德堡，成都，四川，中国\n" in answer
    assert server.count(FORECAST) == 0


async def test_the_table_does_not_know_of_the_geocoders_hamlets(server: Replay, ask: GetWeather) -> None:
    """The recorded misranking of 北京 (open-meteo/geocoding-api issue 20) can no longer come up."""
    server.tell(PLACES, rows(*HAMLETS, BEIJING))
    server.tell(FORECAST, forecast())
    assert BEIJING_HERE in await ask(city="北京")
    assert server.count(PLACES) == 0


async def test_springfield_is_ambiguous_until_its_state_is_named(server: Replay, ask: GetWeather) -> None:
    server.tell(PLACES, rows(*SPRINGFIELDS), name="Springfield", language="en")
    server.tell(FORECAST, forecast())
    answer = await ask(city="Springfield")
    assert '"Springfield" may be any of these places' in answer
    assert answer.count("United States") == 5
    assert server.count(FORECAST) == 0
    assert (await ask(city="Springfield, Illinois")).startswith("Place: Springfield, Illinois, United States")


@pytest.mark.parametrize(
    ("city", "told"),
    [
        ("没有这个地方", "没有找到“没有这个地方”。请换"),
        ("Nowhere-xyzzy", 'There is no place "Nowhere-xyzzy"'),
        ("哈尔宾", "名字相近的地方（未必是用户要的）：\n1. 黑龙江省哈尔滨市\n"),
        ("Shenzen", "1. Shenzhen, Guangdong, China"),
    ],
)
async def test_an_unknown_place_is_told_as_such_with_what_resembles_it(
    server: Replay, ask: GetWeather, city: str, told: str
) -> None:
    server.tell(PLACES, {"generationtime_ms": 0.2})
    with pytest.raises(ToolFailed) as caught:
        await ask(city=city)
    assert told in str(caught.value)
    assert server.count(FORECAST) == 0


async def test_a_city_that_is_none_is_the_models_mistake(server: Replay, ask: GetWeather) -> None:
    for wrong in ({"city": " "}, {"city": "北京", "units": "kelvin"}, {"city": "北京", "days": 8}):
        with pytest.raises(InvalidArguments):
            await ask(**wrong)
    assert server.asked == []


# --- the weather ----------------------------------------------------------------------------------


async def test_one_day_or_as_many_as_asked_for(server: Replay, ask: GetWeather) -> None:
    server.tell(FORECAST, forecast())
    answer = await ask(city="北京", day="明天")
    assert "现在" not in answer
    assert "逐时：00 时 小雪 12°C 降水概率 5%；03 时" in answer
    assert "明天 11-22：小雪" in answer
    assert "11-23" not in answer
    assert "11-22" not in await ask(city="北京", days=1)
    assert (await ask(city="北京", days=7)).count("：") > answer.count("：")
    with pytest.raises(InvalidArguments, match="only from 2026-11-21 to 2026-11-27"):
        await ask(city="北京", day="2026-12-24")


async def test_with_a_key_qweather_answers_first_with_its_warnings(
    server: Replay, ask: GetWeather, clock: StoppedClock
) -> None:
    clock.time = 1_000_000.0  # 1970-01-12, as QWeather's bodies have it
    server.tell(qweather_path("hourly"), qweather_hours())
    server.tell(qweather_path("current"), qweather_now())
    server.tell(qweather_path("daily"), qweather_days())
    server.tell(qweather_path("alert"), qweather_alerts("北京市发布大风蓝色预警信号"))
    server.tell(FORECAST, forecast())
    keys = WeatherKeys(qweather_host=QWEATHER_HOST, qweather_key="sesame")
    answer = await ask(keys=keys, city="北京", days=2)
    assert "预警：北京市发布大风蓝色预警信号（至 01-13 11:19）" in answer
    assert "来源：和风天气 QWeather" in answer
    assert server.count(FORECAST) == 0


@pytest.mark.parametrize(
    ("status", "body"),
    [(429, QUOTA), (400, {"error": True, "reason": "Invalid timezone"}), (500, "oops"), (200, ""), (200, "<html>")],
)
@pytest.mark.parametrize("path", [PLACES, FORECAST])
async def test_a_failure_is_told_and_never_covered_up(
    server: Replay, ask: GetWeather, path: str, status: int, body: Any
) -> None:
    server.tell(PLACES, rows(HEIDELBERG))
    server.tell(FORECAST, forecast())
    server.tell(path, body, status=status)
    with pytest.raises(ToolFailed, match=r"could not be fetched: Open-Meteo .* do not make any up"):
        await ask(city="海德堡")


@pytest.mark.parametrize("patience", [0.5])
async def test_a_slow_source_gives_way_to_the_next(server: Replay, ask: GetWeather, patience: float) -> None:
    server.tell(FORECAST, forecast(), gate=asyncio.Event())
    with pytest.raises(ToolFailed, match=rf"api\.open-meteo\.com did not answer within {patience:g} s; wttr\.in"):
        await ask(city="上海")
    server.tell(wttr_path(), wttr())
    assert "来源：wttr.in" in await ask(city="北京")


async def test_for_ten_minutes_nothing_is_asked_again(server: Replay, ask: GetWeather, clock: StoppedClock) -> None:
    server.tell(PLACES, rows(HEIDELBERG))
    server.tell(FORECAST, forecast())
    first = await ask(city="海德堡")
    clock.time += 599
    assert await ask(city="海德堡天气") == first
    assert "°F" in await ask(city="海德堡", units="imperial")
    assert len(server.asked) == 2
    clock.time += 2
    await ask(city="海德堡")
    assert len(server.asked) == 4


async def test_when_nobody_answers_what_is_old_is_told_with_its_age(
    server: Replay, ask: GetWeather, clock: StoppedClock
) -> None:
    server.tell(FORECAST, forecast())
    await ask(city="北京")
    server.tell(FORECAST, "oops", status=502)
    clock.time += 7500
    answer = await ask(city="北京")
    assert "以上是 2 小时 5 分钟前取得的数据" in answer
    assert "今天 11-22：小雪" in answer  # it was 22:15 then


async def test_a_failure_does_not_last(server: Replay, ask: GetWeather, clock: StoppedClock) -> None:
    server.tell(FORECAST, QUOTA, status=429)
    with pytest.raises(ToolFailed):
        await ask(city="北京")
    server.tell(FORECAST, forecast())
    clock.time += 61
    assert "3.4°C" in await ask(city="北京")


async def test_a_hundred_asking_at_once_are_one_question(server: Replay, ask: GetWeather) -> None:
    server.tell(PLACES, rows(HEIDELBERG))
    server.tell(FORECAST, forecast())
    answers: set[str] = set()

    async def one_of_them(city: str) -> None:
        answers.add(await ask(city=city))

    async with asyncio.timeout(20), asyncio.TaskGroup() as group:
        for _ in range(50):
            group.create_task(one_of_them("北京"))
            group.create_task(one_of_them("海德堡"))
    assert len(answers) == 2
    assert (server.count(PLACES), server.count(FORECAST)) == (1, 2)


async def test_recorded_answers_make_a_weather_report(server: Replay, ask: GetWeather, clock: StoppedClock) -> None:
    clock.time = dt.datetime(2026, 9, 15, 8, 5, tzinfo=dt.UTC).timestamp()
    server.tell_sample(PLACES, "openmeteo_geocode_samara_en")
    server.tell_sample(FORECAST, "openmeteo_forecast_samara_7d")
    answer = await ask(keys=WeatherKeys(), city="Samara", days=7)
    assert answer.splitlines()[:3] == [
        "Place: Samara, Samara Oblast, Russia (53.21, 50.14)",
        "Now: overcast, 18.5°C, feels like 18.5°C, humidity 78%, wind E 3.0 m/s",
        "today 09-15: overcast, 13.3°C ~ 19.8°C, chance of rain 30%",
    ]
    assert "09-21: overcast, 13.7°C ~ 21.4°C, chance of rain 6%" in answer


async def test_after_midnight_today_is_the_new_day_whenever_it_was_observed(
    server: Replay, ask: GetWeather, clock: StoppedClock
) -> None:
    clock.time = dt.datetime(2026, 11, 21, 16, 5, tzinfo=dt.UTC).timestamp()  # 00:05 in Beijing
    server.tell(AMAP, amap_live(reporttime="2026-11-21 23:50:00"), extensions="base")
    server.tell(AMAP, amap_casts(), extensions="all")
    keys = WeatherKeys(amap_key="sesame")
    answer = await ask(keys=keys, city="北京")
    assert "今天 11-22：小雪转多云" in answer
    assert "11-21：" not in answer
    assert "今天 11-22" in await ask(keys=keys, city="北京", day="今天")


async def test_days_that_amap_does_not_have_come_from_the_next_source(
    server: Replay, ask: GetWeather, clock: StoppedClock
) -> None:
    week = [f"2026-11-{day}" for day in range(21, 28)]
    daily = {"time": week, "weather_code": [0] * 7, "temperature_2m_max": [11.5] * 7, "temperature_2m_min": [-3.5] * 7}
    server.tell(AMAP, amap_live(), extensions="base")
    server.tell(AMAP, amap_casts(), extensions="all")
    server.tell(FORECAST, forecast(daily=daily))
    keys = WeatherKeys(amap_key="sesame")
    answer = await ask(keys=keys, city="北京", days=7)
    assert "现在：阴，4°C" in answer
    assert "明天 11-22：小雪转多云，-2°C ~ 9°C" in answer
    assert "11-27：晴，-3.5°C ~ 11.5°C" in answer
    assert "来源：高德 AMap + Open-Meteo" in answer
    assert "天气数据：高德开放平台; Weather data by Open-Meteo.com" in answer
    assert "11-26：晴" in await ask(keys=keys, city="北京", day="2026-11-26")


async def test_too_few_days_are_told_where_nobody_has_more(server: Replay, ask: GetWeather) -> None:
    server.tell(AMAP, amap_live(), extensions="base")
    server.tell(AMAP, amap_casts(), extensions="all")
    answer = await ask(keys=WeatherKeys(amap_key="sesame"), city="北京", days=7)
    assert "只查到 4 天的预报" in answer
    assert "来源：高德 AMap\n" in answer


async def test_a_short_latin_name_is_asked_about_where_our_table_has_it_too(server: Replay, ask: GetWeather) -> None:
    gulou = row(9, "Gulou", "PPLA3", 90000, country="China", country_code="CN", admin1="Guangdong", latitude=23.5)
    server.tell(PLACES, rows(gulou), name="Gulou", language="en")
    answer = await ask(city="Gulou")
    assert '"Gulou" may be any of these places' in answer
    assert "1. Gulou, Guangdong, China\n2. Gulou, Nanjing, Jiangsu, China" in answer
    assert server.count(FORECAST) == 0


@pytest.mark.parametrize("time", ["2026-11-21T22:15Z", "0001-01-01T00:00+14:00", "soon"])
async def test_a_garbled_time_is_a_failure_of_its_source_and_the_next_is_asked(
    server: Replay, ask: GetWeather, time: str
) -> None:
    server.tell(FORECAST, forecast(current=forecast()["current"] | {"time": time}))
    server.tell(wttr_path(), wttr())
    assert "来源：wttr.in" in await ask(city="北京")
