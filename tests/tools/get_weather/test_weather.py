"""The words every source of weather speaks."""

from __future__ import annotations

import datetime as dt

from tests.cases import each_case
from tools.get_weather.weather import (
    CODES,
    Alert,
    Day,
    Hour,
    Now,
    Weather,
    read_chinese,
    read_english,
    read_symbol,
    read_wind,
    say_code,
)

TIME = dt.datetime.fromisoformat("2026-11-21T22:15")


def test_what_a_source_does_not_say_is_none_or_empty() -> None:
    now = Now(time=TIME, code=None, temperature=3.4)
    weather = Weather(now=now, days=(Day(date=TIME.date()),), zone="Asia/Shanghai", credit="somebody")
    assert (weather.now.feels_like, weather.now.text, weather.now.force) == (None, "", "")
    assert (weather.days[0].rain_chance, weather.days[0].rain) == (None, None)
    assert weather.alerts is None
    assert Hour(time=TIME, temperature=1).code is None
    assert Alert("大风蓝色预警").until is None


def test_every_code_has_words_in_both_languages() -> None:
    for code, (chinese, english) in CODES.items():
        assert say_code(code, "zh") == chinese != ""
        assert say_code(code, "en") == english != ""
    assert len({words for words, _ in CODES.values()}) == len(CODES)


def test_a_code_nobody_knows_keeps_its_number() -> None:
    assert (say_code(42, "zh"), say_code(42, "en")) == ("天气代码 42", "weather code 42")
    assert (say_code(None, "zh"), say_code(None, "en")) == ("天气未知", "unknown")


@each_case(
    ("text", "code"),
    [
        ("晴", 0), ("少云", 1), ("晴间多云", 1), ("多云", 2), ("阴", 3), ("霾", 5), ("重度霾", 5), ("浮尘", 6),
        ("扬沙", 6), ("强沙尘暴", 33), ("雾", 45), ("大雾", 45), ("毛毛雨/细雨", 51), ("小雨", 61),
        ("小雨-中雨", 63), ("中雨", 63), ("大雨", 65), ("暴雨", 65), ("特大暴雨", 65), ("冻雨", 66), ("雨夹雪", 68),
        ("雨雪天气", 68), ("小雪", 71),
        ("中雪", 73), ("大雪", 75), ("暴雪", 75), ("阵雪", 85), ("阵雨", 80), ("强阵雨", 81), ("雷阵雨", 95),
        ("强雷阵雨", 97), ("雷阵雨并伴有冰雹", 96), ("平静", None), ("", None),
    ],
)  # fmt: skip
def test_chinese_words(text: str, code: int | None) -> None:
    assert read_chinese(text) == code


@each_case(
    ("text", "code"),
    [
        ("Sunny", 0), ("Clear ", 0), ("Partly Cloudy ", 2), ("Cloudy", 3), ("Overcast", 3), ("Mist", 45), ("Fog", 45),
        ("Freezing fog", 48), ("Patchy light drizzle", 51), ("Light rain", 61), ("Patchy rain nearby", 61),
        ("Moderate rain", 63), ("Heavy rain", 65), ("Light rain shower", 80), ("Torrential rain shower", 82),
        ("Light sleet", 68), ("Light freezing rain", 66), ("Patchy heavy snow", 75), ("Moderate snow", 73),
        ("Light snow showers", 85), ("Blizzard", 75), ("Ice pellets", 77), ("Thundery outbreaks possible", 95),
        ("Patchy light rain with thunder", 95), ("Smoky haze", 5), ("Plague", None),
    ],
)  # fmt: skip
def test_english_words(text: str, code: int | None) -> None:
    assert read_english(text) == code


@each_case(
    ("symbol", "code"),
    [
        ("clearsky_day", 0), ("fair_night", 1), ("partlycloudy_polartwilight", 2), ("cloudy", 3), ("fog", 45),
        ("lightrain", 61), ("rain", 63), ("heavyrain", 65), ("lightrainshowers_day", 80),
        ("heavyrainshowers_night", 82), ("sleet", 68), ("lightsnow", 71), ("snow", 73), ("heavysnow", 75),
        ("snowshowers_day", 85),
        ("heavysnowshowers_day", 86), ("rainandthunder", 95), ("heavyrainshowersandthunder_day", 97),
        ("lightssleetshowersandthunder_day", 95), ("lightssnowshowersandthunder_night", 95), ("", None),
    ],
)  # fmt: skip
def test_symbols_of_met_norway(symbol: str, code: int | None) -> None:
    assert read_symbol(symbol) == code


def test_winds_by_their_chinese_names() -> None:
    assert [read_wind(name) for name in ("北", "东北", "西北", "南风", "无风向", "")] == [0, 45, 315, 180, None, None]
