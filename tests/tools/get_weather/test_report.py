"""How a weather is said."""

from __future__ import annotations

import datetime as dt

import pytest

from tools.get_weather.places import Ambiguous, Chosen, NotFound, Place, Query
from tools.get_weather.report import (
    CODES,
    Unit,
    report_ambiguous,
    report_not_found,
    report_weather,
    say_code,
    say_degrees,
)
from tools.get_weather.weather import Day, Now, Weather

BEIJING = Place(id=1, name="北京", latitude=39.9075, longitude=116.39723, country="中国", regions=("北京市",))
PARIS = Place(id=2, name="Paris", latitude=48.85, longitude=2.35, country="France", regions=("Île-de-France",))
TEXAS = Place(id=3, name="Paris", latitude=33.66, longitude=-95.55, country="United States", regions=("Texas",))
WEATHER = Weather(
    now=Now(
        time=dt.datetime.fromisoformat("2026-11-21T22:15"),
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
)


def test_a_chinese_question_has_a_chinese_answer() -> None:
    assert report_weather(Chosen(BEIJING), WEATHER, unit="celsius", language="zh").splitlines() == [
        "地点：北京，中国 (39.91, 116.40)",
        "现在：多云，3.4°C，体感 0°C，湿度 45%，西北风 2.5 m/s",
        "今天 11-21：多云，-1.5°C ~ 9.6°C，降水概率 3%",
        "明天 11-22：小雪，-4.2°C ~ 2°C，降水概率 80%",
        "后天 11-23：天气代码 42",
        "观测时间：2026-11-21 22:15（当地时间 Asia/Shanghai）",
        "Weather data by somebody",
    ]


def test_an_english_question_has_an_english_answer_in_the_unit_asked_for() -> None:
    answer = report_weather(Chosen(PARIS, (TEXAS,)), WEATHER, unit="fahrenheit", language="en")
    assert answer.splitlines() == [
        "Place: Paris, Île-de-France, France (48.85, 2.35)",
        "Now: partly cloudy, 38.1°F, feels like 31.9°F, humidity 45%, wind NW 2.5 m/s",
        "today 11-21: partly cloudy, 29.3°F ~ 49.3°F, chance of rain 3%",
        "tomorrow 11-22: light snow, 24.4°F ~ 35.6°F, chance of rain 80%",
        "in 2 days 11-23: weather code 42",
        "Observed: 2026-11-21 22:15 (local time Asia/Shanghai)",
        "Other places of this name: Paris, Texas, United States",
        "Weather data by somebody",
    ]


def test_what_is_not_known_is_not_said() -> None:
    now = Now(time=WEATHER.now.time, code=None, temperature=20, wind_speed=1)
    weather = Weather(now=now, days=(Day(date=dt.date(2027, 1, 1)),), zone="", credit="c")
    assert report_weather(Chosen(BEIJING), weather, unit="celsius", language="zh").splitlines()[1:4] == [
        "现在：天气未知，20°C，风速 1.0 m/s",
        "01-01：天气未知",
        "观测时间：2026-11-21 22:15（当地时间）",
    ]


@pytest.mark.parametrize(
    ("celsius", "unit", "said"),
    [(0, "fahrenheit", "32°F"), (-40, "fahrenheit", "-40°F"), (100, "fahrenheit", "212°F"), (-0.01, "celsius", "0°C")],
)
def test_degrees(celsius: float, unit: Unit, said: str) -> None:
    assert say_degrees(celsius, unit) == said


def test_every_code_has_words_in_both_languages() -> None:
    for code, (chinese, english) in CODES.items():
        assert say_code(code, "zh") == chinese != ""
        assert say_code(code, "en") == english != ""


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
