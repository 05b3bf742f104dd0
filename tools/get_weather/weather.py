"""The weather in the form all sources provide: °C, m/s, percent, millimetres, WMO weather codes.

Values a source does not provide are None or empty, never guessed. Times are local to the place,
without offset.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass

from tools.get_weather.places import Language


@dataclass(frozen=True, slots=True, kw_only=True)
class Now:
    """The weather at `time`. `text` is the source's Chinese, `force` Beaufort ("≤3")."""

    time: dt.datetime
    code: int | None
    temperature: float
    text: str = ""
    feels_like: float | None = None
    humidity: float | None = None
    wind_speed: float | None = None
    wind_from: float | None = None
    force: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hour:
    """The hour that begins at `time`. `rain_chance` is in percent, `rain` in millimetres."""

    time: dt.datetime
    temperature: float
    code: int | None = None
    text: str = ""
    rain_chance: float | None = None
    rain: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Day:
    """One day. `rain_chance` is in percent, `rain` in millimetres."""

    date: dt.date
    code: int | None = None
    text: str = ""
    low: float | None = None
    high: float | None = None
    rain_chance: float | None = None
    rain: float | None = None


@dataclass(frozen=True, slots=True)
class Alert:
    """An official warning, valid `until` a local time (None if unknown)."""

    title: str
    detail: str = ""
    until: dt.datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Weather:
    """A place's weather. `zone` is its time zone, `credit` the text that the licence requires.

    `alerts` is None if the source reports none, and empty if it says that there are none.
    """

    now: Now
    days: tuple[Day, ...]
    zone: str
    credit: str
    source: str = ""
    hours: tuple[Hour, ...] = ()
    alerts: tuple[Alert, ...] | None = None


CODES: dict[int, tuple[str, str]] = {
    0: ("晴", "clear"),
    1: ("晴间多云", "mainly clear"),
    2: ("多云", "partly cloudy"),
    3: ("阴", "overcast"),
    5: ("霾", "haze"),
    6: ("浮尘", "dust"),
    33: ("沙尘暴", "sandstorm"),
    45: ("雾", "fog"),
    48: ("雾凇", "rime fog"),
    51: ("小毛毛雨", "light drizzle"),
    53: ("毛毛雨", "drizzle"),
    55: ("大毛毛雨", "dense drizzle"),
    56: ("轻冻毛毛雨", "light freezing drizzle"),
    57: ("强冻毛毛雨", "dense freezing drizzle"),
    61: ("小雨", "light rain"),
    63: ("中雨", "rain"),
    65: ("大雨", "heavy rain"),
    66: ("轻冻雨", "light freezing rain"),
    67: ("强冻雨", "heavy freezing rain"),
    68: ("雨夹雪", "sleet"),
    71: ("小雪", "light snow"),
    73: ("中雪", "snow"),
    75: ("大雪", "heavy snow"),
    77: ("米雪", "snow grains"),
    80: ("阵雨", "light showers"),
    81: ("强阵雨", "showers"),
    82: ("暴阵雨", "violent showers"),
    85: ("小阵雪", "light snow showers"),
    86: ("大阵雪", "heavy snow showers"),
    95: ("雷阵雨", "thunderstorm"),
    96: ("雷阵雨伴小冰雹", "thunderstorm with slight hail"),
    97: ("强雷阵雨", "heavy thunderstorm"),
    99: ("雷阵雨伴大冰雹", "thunderstorm with heavy hail"),
}

# The first entry whose words are all in the text wins, so rarer and graver ones come first.
CHINESE: tuple[tuple[str, int], ...] = (
    ("雷 冰雹", 96), ("强雷", 97), ("雷", 95), ("冰雹", 96), ("雨 雪", 68), ("冻雨", 66),
    ("强 阵雨", 81), ("阵雨", 80), ("毛毛雨", 51), ("暴雨", 65), ("大雨", 65), ("中雨", 63),
    ("雨", 61), ("阵雪", 85), ("暴雪", 75), ("大雪", 75), ("中雪", 73), ("雪", 71), ("沙尘暴", 33),
    ("扬沙", 6), ("浮尘", 6), ("霾", 5), ("雾", 45), ("阴", 3), ("晴 云", 1), ("少云", 1),
    ("云", 2), ("晴", 0),
)  # fmt: skip
ENGLISH: tuple[tuple[str, int], ...] = (
    ("thunder hail", 96), ("thunder", 95), ("ice pellets", 77), ("sleet", 68),
    ("freezing drizzle", 56), ("freezing rain", 66), ("freezing fog", 48), ("blizzard", 75),
    ("blowing snow", 73), ("heavy snow shower", 86), ("snow shower", 85), ("heavy snow", 75),
    ("moderate snow", 73), ("snow", 71), ("torrential", 82), ("heavy rain shower", 81),
    ("shower", 80), ("heavy rain", 65), ("light drizzle", 51), ("drizzle", 53), ("light rain", 61),
    ("patchy rain", 61), ("rain", 63), ("sandstorm", 33), ("dust", 6), ("sand", 6), ("haze", 5),
    ("smoke", 5), ("fog", 45), ("mist", 45), ("overcast", 3), ("partly cloudy", 2), ("cloudy", 3),
    ("fair", 1), ("sunny", 0), ("clear", 0),
)  # fmt: skip
WINDS = {
    "zh": ("北风", "东北风", "东风", "东南风", "南风", "西南风", "西风", "西北风"),
    "en": ("N", "NE", "E", "SE", "S", "SW", "W", "NW"),
}


def say_code(code: int | None, language: Language) -> str:
    """A weather code in words; an unknown one as a number."""
    if code is None:
        return "天气未知" if language == "zh" else "unknown"
    if code not in CODES:
        return f"天气代码 {code}" if language == "zh" else f"weather code {code}"
    return CODES[code][0 if language == "zh" else 1]


def read_chinese(text: str) -> int | None:
    """小雨 -> 61; None for an unknown word (风, 热 ...)."""
    return _first(CHINESE, text)


def read_english(text: str) -> int | None:
    """Light rain shower -> 80."""
    return _first(ENGLISH, text.casefold())


def read_symbol(symbol: str) -> int | None:
    """MET Norway's symbol_code: lightrainshowersandthunder_day -> 95. Two have typos."""
    name = symbol.partition("_")[0]
    exact = {"clearsky": 0, "fair": 1, "partlycloudy": 2, "cloudy": 3, "fog": 45}
    if name in exact:
        return exact[name]
    if "thunder" in name:
        return 97 if name.startswith("heavy") else 95
    grade = 0 if name.startswith("light") else 2 if name.startswith("heavy") else 1
    kinds = (
        ("sleet", (68, 68, 68)), ("snowshowers", (85, 85, 86)), ("snow", (71, 73, 75)),
        ("rainshowers", (80, 81, 82)), ("rain", (61, 63, 65)),
    )  # fmt: skip
    return next((codes[grade] for kind, codes in kinds if kind in name), None)


def read_wind(direction: str) -> float | None:
    """The degrees of a Chinese direction: 东北 -> 45; None for 无风向 and the like."""
    names = [name.removesuffix("风") for name in WINDS["zh"]]
    bare = direction.removesuffix("风")
    return names.index(bare) * 45.0 if bare in names else None


def _first(table: Sequence[tuple[str, int]], text: str) -> int | None:
    return next(
        (code for words, code in table if all(word in text for word in words.split())), None
    )
