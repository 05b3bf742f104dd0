"""How a weather is said."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from typing import Any

import pytest

from frostagent.types.errors import InvalidArguments
from tests.cases import each_case
from tools.get_weather.places import Ambiguous, Chosen, NotFound, Query, WeatherPlace
from tools.get_weather.report import (
    Units,
    read_day,
    report_ambiguous,
    report_not_found,
    report_weather,
    say_age,
    say_condition,
    say_degrees,
    say_path,
)
from tools.get_weather.weather import Alert, Day, Hour, Now, Weather

at = dt.datetime.fromisoformat

BEIJING = WeatherPlace(id=1, name="北京", latitude=39.9075, longitude=116.39723, country="中国", regions=("北京市",))
PARIS = WeatherPlace(id=2, name="Paris", latitude=48.85, longitude=2.35, country="France", regions=("Île-de-France",))
TEXAS = WeatherPlace(id=3, name="Paris", latitude=33.66, longitude=-95.55, country="United States", regions=("Texas",))
WEATHER = Weather(
    now=Now(
        time=at("2026-11-21T22:15"),
        code=2,
        temperature=3.4,
        feels_like=-0.04,
        humidity=45,
        wind_speed=2.5,
        wind_from=318,
    ),
    days=(
        Day(date=dt.date(2026, 11, 21), code=2, low=-1.5, high=9.6, rain_chance=3),
        Day(date=dt.date(2026, 11, 22), code=71, low=-4.2, high=2.0, rain_chance=80),
        Day(date=dt.date(2026, 11, 23), code=42),
    ),
    zone="Asia/Shanghai",
    credit="Weather data by somebody",
    source="Somebody",
    hours=tuple(
        Hour(time=at("2026-11-21T18:00") + dt.timedelta(hours=hour), temperature=hour - 2, code=71, rain=0.25)
        for hour in range(12)
    ),
)


def report(chosen: Chosen, weather: Weather, *, age: float = 0.0, **more: Any) -> str:
    """As it is said `age` seconds after the observation."""
    return report_weather(chosen, weather, now_there=weather.now.time + dt.timedelta(seconds=age), age=age, **more)


def test_a_chinese_question_has_a_chinese_answer() -> None:
    assert report(Chosen(BEIJING), WEATHER, units="metric", language="zh").splitlines() == [
        "地点：北京，中国 (39.91, 116.40)",
        "现在：多云，3.4°C，体感 0°C，湿度 45%，西北风 2.5 m/s",
        "今天 11-21：多云，-1.5°C ~ 9.6°C，降水概率 3%",
        "明天 11-22：小雪，-4.2°C ~ 2°C，降水概率 80%",
        "后天 11-23：天气代码 42",
        "观测时间：2026-11-21 22:15（当地时间 Asia/Shanghai）",
        "来源：Somebody",
        "Weather data by somebody",
    ]


def test_an_english_question_has_an_english_answer_in_the_unit_asked_for() -> None:
    answer = report(Chosen(PARIS, (TEXAS,)), WEATHER, units="imperial", language="en")
    assert answer.splitlines() == [
        "Place: Paris, Île-de-France, France (48.85, 2.35)",
        "Now: partly cloudy, 38.1°F, feels like 31.9°F, humidity 45%, wind NW 6 mph",
        "today 11-21: partly cloudy, 29.3°F ~ 49.3°F, chance of rain 3%",
        "tomorrow 11-22: light snow, 24.4°F ~ 35.6°F, chance of rain 80%",
        "in 2 days 11-23: weather code 42",
        "Observed: 2026-11-21 22:15 (local time Asia/Shanghai)",
        "Source: Somebody",
        "Other places of this name: Paris, Texas, United States",
        "Weather data by somebody",
    ]


def test_what_is_not_known_is_not_said() -> None:
    now = Now(time=WEATHER.now.time, code=None, temperature=20, wind_speed=1)
    weather = Weather(now=now, days=(Day(date=dt.date(2027, 1, 1)),), zone="", credit="c")
    assert report(Chosen(BEIJING), weather, units="metric", language="zh", days=1).splitlines()[1:4] == [
        "现在：天气未知，20°C，风速 1.0 m/s",
        "01-01：天气未知",
        "观测时间：2026-11-21 22:15（当地时间）",
    ]


def say(weather: Weather, **more: Any) -> list[str]:
    return report(Chosen(BEIJING), weather, units="metric", language="zh", **more).splitlines()


def test_as_many_days_as_asked_for_from_today_on() -> None:
    assert [line[:2] for line in say(WEATHER, days=1)].count("今天") == 1
    assert not any(line.startswith("明天") for line in say(WEATHER, days=1))
    after_midnight = say(WEATHER, age=2 * 3600)
    assert not any("11-21：" in line for line in after_midnight)
    assert any(line.startswith("今天 11-22：") for line in after_midnight)


def test_of_the_hours_every_third_that_is_still_to_come_is_said() -> None:
    evening = replace(WEATHER, now=replace(WEATHER.now, time=at("2026-11-21T17:50")))
    assert "逐时：18 时 小雪 -2°C 降水 0.2 mm；21 时 小雪 1°C 降水 0.2 mm" in say(evening)
    assert not any(line.startswith("逐时") for line in say(WEATHER))


def test_one_day_is_told_alone_with_its_hours() -> None:
    lines = say(WEATHER, day=dt.date(2026, 11, 22))
    assert not any(line.startswith("现在") for line in lines)
    assert "逐时：00 时 小雪 4°C 降水 0.2 mm；03 时 小雪 7°C 降水 0.2 mm" in lines
    assert [line for line in lines if "11-2" in line][:1] == ["明天 11-22：小雪，-4.2°C ~ 2°C，降水概率 80%"]
    assert any(line.startswith("现在") for line in say(WEATHER, day=dt.date(2026, 11, 21)))
    assert "这一天没有预报，请如实告诉用户。" in say(WEATHER, day=dt.date(2026, 11, 27))


def test_warnings_come_first_and_their_absence_is_said_only_where_it_is_known() -> None:
    alert = Alert("大风蓝色预警", "注意防风", at("2026-11-22T08:00"))
    assert say(replace(WEATHER, alerts=(alert,)))[1] == "预警：大风蓝色预警（至 11-22 08:00） 注意防风"
    assert say(replace(WEATHER, alerts=()))[1] == "预警：目前没有"
    assert not any("预警" in line for line in say(WEATHER))
    english = report(Chosen(PARIS), replace(WEATHER, alerts=(alert,)), units="metric", language="en")
    assert "Warning: 大风蓝色预警 (until 11-22 08:00) 注意防风" in english


def test_what_is_old_says_how_old() -> None:
    assert "注意：数据源现在都没有回应，以上是 2 小时 5 分钟前取得的数据，请告诉用户。" in say(
        WEATHER, age=7500, is_stale=True
    )
    english = report(Chosen(PARIS), WEATHER, units="metric", language="en", age=3600, is_stale=True)
    assert "Note: no source answers at the moment; this is 1 h old." in english


def test_wind_by_its_force_and_the_sources_own_words() -> None:
    now = Now(time=WEATHER.now.time, code=65, text="暴雨", temperature=3, wind_from=45, force="≤3")
    weather = replace(WEATHER, now=now, days=(Day(date=dt.date(2026, 11, 21), code=65, text="暴雨转阴"),))
    lines = say(weather)
    assert lines[1] == "现在：暴雨，3°C，东北风 ≤3 级"
    assert lines[2] == "今天 11-21：暴雨转阴"
    english = report(Chosen(PARIS), weather, units="metric", language="en").splitlines()
    assert english[1] == "Now: heavy rain, 3°C, wind NE force ≤3"


def test_too_few_days_are_told_as_such() -> None:
    assert "只查到 3 天的预报，请如实告诉用户。" in say(WEATHER, days=7)
    assert not any("只查到" in line for line in say(WEATHER, days=3))
    assert not any("只查到" in line for line in say(WEATHER, days=7, day=dt.date(2026, 11, 22)))
    english = report(Chosen(PARIS), WEATHER, units="metric", language="en", days=5)
    assert "There is a forecast for only 3 days; say so." in english


@each_case(
    ("seconds", "said"),
    [(10, "1 分钟"), (600, "10 分钟"), (3600, "1 小时"), (7500, "2 小时 5 分钟"), (10799, "3 小时")],
)
def test_ages(seconds: float, said: str) -> None:
    assert say_age(seconds, "zh") == said


def test_ages_in_english() -> None:
    assert say_age(7500, "en") == "2 h 5 min"


@each_case(
    ("celsius", "units", "said"),
    [(0, "imperial", "32°F"), (-40, "imperial", "-40°F"), (100, "imperial", "212°F"), (-0.01, "metric", "0°C")],
)
def test_degrees(celsius: float, units: Units, said: str) -> None:
    assert say_degrees(celsius, units) == said


def test_degrees_of_a_chart_are_whole_and_without_their_letter() -> None:
    assert [say_degrees(celsius, "metric", sign=False) for celsius in (18.6, -0.4, -33.3)] == ["19°", "0°", "-33°"]


def test_the_sources_own_word_is_for_chinese_only() -> None:
    assert (say_condition(65, "暴雨", "zh"), say_condition(65, "暴雨", "en")) == ("暴雨", "heavy rain")
    assert say_condition(65, "", "zh") == "大雨"


def test_a_place_of_the_table_is_said_by_its_title() -> None:
    assert say_path(replace(BEIJING, title="北京市"), "zh") == "北京市"


def test_a_place_that_is_too_large_is_answered_with_its_cities() -> None:
    places = (replace(BEIJING, title="广东省广州市"),)
    said = report_ambiguous(Query("广东"), Ambiguous(places, more=20, within=True))
    assert said.startswith("“广东”范围太大，里面有这些城市，没有查天气：\n1. 广东省广州市\n……还有 20 处\n")
    english = report_ambiguous(Query("Guangdong"), Ambiguous(places, more=20, within=True))
    assert english.startswith('"Guangdong" is too large; in it are:\n1. 广东省广州市\n... and 20 more\n')


def test_an_ambiguous_place_is_answered_with_paths() -> None:
    english = report_ambiguous(Query("Paris"), Ambiguous((PARIS, TEXAS)))
    assert "1. Paris, Île-de-France, France\n2. Paris, Texas, United States\n" in english
    assert 'ask again as "Springfield, Illinois"' in english
    chinese = report_ambiguous(Query("北京"), Ambiguous((BEIJING,)))
    assert "1. 北京，中国\n" in chinese


def test_an_unknown_place_is_answered_with_what_to_try() -> None:
    chinese = report_not_found(Query("某某", ("某省",)), NotFound())
    assert chinese.startswith("没有找到“某某, 某省”。请换一个更大的地名")
    english = report_not_found(Query("Pari"), NotFound((PARIS,)))
    assert "1. Paris, Île-de-France, France\nTry a bigger place" in english
    assert "do not make up any weather" in english


SATURDAY = dt.date(2026, 11, 21)


@each_case(
    ("text", "away"),
    [
        ("today", 0), ("Tonight", 0), ("今天", 0), ("tomorrow", 1), ("明天", 1), ("后天", 2), ("大后天", 3),
        ("day after  tomorrow", 2), ("周六", 0), ("周日", 1), ("星期天", 1), ("下周一", 2), ("礼拜五", 6),
        ("Sunday", 1), ("friday", 6), ("2026-11-21", 0), (" 2026-11-27 ", 6),
    ],
)  # fmt: skip
def test_a_day_is_a_word_a_weekday_or_a_date(text: str, away: int) -> None:
    assert read_day(text, SATURDAY) == SATURDAY + dt.timedelta(days=away)


@each_case("text", ["2026-11-20", "2026-11-28", "2030-01-01"])
def test_a_day_nobody_forecasts_is_refused(text: str) -> None:
    with pytest.raises(InvalidArguments, match="only from 2026-11-21 to 2026-11-27"):
        read_day(text, SATURDAY)


@each_case("text", ["soon", "11-24", "周八", "2026-13-01"])
def test_what_is_no_day_is_refused(text: str) -> None:
    with pytest.raises(InvalidArguments, match="is no day"):
        read_day(text, SATURDAY)
