"""Says a choice of places and a weather in words, in Chinese or English. Pure."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Literal, TypeAlias

from tools.get_weather.places import Ambiguous, Chosen, Language, NotFound, Place, Query
from tools.get_weather.weather import Day, Now, Weather

Unit: TypeAlias = Literal["celsius", "fahrenheit"]

# WMO weather codes as Open-Meteo uses them (`shared/sources/facts.md` 1.3).
CODES: dict[int, tuple[str, str]] = {
    0: ("晴", "clear"),
    1: ("晴间多云", "mainly clear"),
    2: ("多云", "partly cloudy"),
    3: ("阴", "overcast"),
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
WINDS = {
    "zh": ("北风", "东北风", "东风", "东南风", "南风", "西南风", "西风", "西北风"),
    "en": ("N", "NE", "E", "SE", "S", "SW", "W", "NW"),
}
DAY_NAMES = {"zh": ("今天", "明天", "后天"), "en": ("today", "tomorrow", "in 2 days")}


def report_weather(chosen: Chosen, weather: Weather, *, unit: Unit, language: Language) -> str:
    """The whole answer: place, now, the coming days, when it was observed, whose data it is."""
    place, now = chosen.place, weather.now
    where = f"{say_path(place, language)} ({place.latitude:.2f}, {place.longitude:.2f})"
    what = _say_now(now, unit, language)
    when = f"{now.time:%Y-%m-%d %H:%M}"
    clock = f"当地时间 {weather.zone}" if language == "zh" else f"local time {weather.zone}"
    days = [_say_day(day, now.time.date(), unit, language) for day in weather.days]
    others = "; ".join(say_path(other, language) for other in chosen.others)
    if language == "zh":
        lines = [f"地点：{where}", f"现在：{what}", *days, f"观测时间：{when}（{clock.strip()}）"]
        lines += [f"另有同名地点：{others}"] if others else []
    else:
        lines = [f"Place: {where}", f"Now: {what}", *days, f"Observed: {when} ({clock.strip()})"]
        lines += [f"Other places of this name: {others}"] if others else []
    return "\n".join((*lines, weather.credit))


def report_ambiguous(query: Query, choice: Ambiguous) -> str:
    """The paths to choose from, each of which can be asked for as it stands."""
    paths = _list_paths(choice.places, query.language)
    if query.language == "zh":
        return (
            f"“{query.name}”可能指下面这些地方，不知道是哪一个，没有查天气：\n{paths}\n"
            "请按对话判断或问用户，再用“地名，省或国家”的形式查一次；要找的大地方不在其中时换它的英文名再查。"
        )
    return (
        f'"{query.name}" may be any of these places, so no weather was fetched:\n{paths}\n'
        'Tell from the conversation or ask the user which is meant, then ask again as "Springfield, Illinois".'
    )


def report_not_found(query: Query, choice: NotFound) -> str:
    """What to try instead."""
    asked = ", ".join((query.name, *query.within))
    paths = _list_paths(choice.near, query.language)
    if query.language == "zh":
        near = f"相近的地方：\n{paths}\n" if paths else ""
        return (
            f"没有找到“{asked}”。{near}"
            "请换一个更大的地名（区县请用所在城市），或换英文名再查；仍查不到就如实告诉用户，不要编造天气。"
        )
    near = f"Places with a similar name:\n{paths}\n" if paths else ""
    return (
        f'There is no place "{asked}". {near}Try a bigger place near it, another spelling, or its name in Chinese; '
        "if that fails too, tell the user so and do not make up any weather."
    )


def say_path(place: Place, language: Language) -> str:
    """A place with all it lies in, in the form in which it can be asked for."""
    return ("，" if language == "zh" else ", ").join(place.path)


def say_code(code: int | None, language: Language) -> str:
    """A weather code in words; a code nobody told us about keeps its number."""
    if code is None:
        return "天气未知" if language == "zh" else "unknown"
    if code not in CODES:
        return f"天气代码 {code}" if language == "zh" else f"weather code {code}"
    return CODES[code][0 if language == "zh" else 1]


def say_degrees(celsius: float, unit: Unit) -> str:
    """18.8°C, or the same in Fahrenheit."""
    degrees = celsius * 9 / 5 + 32 if unit == "fahrenheit" else celsius
    return f"{round(degrees, 1) + 0.0:g}°{'F' if unit == 'fahrenheit' else 'C'}"  # + 0.0 makes -0 a 0


def _say_now(now: Now, unit: Unit, language: Language) -> str:
    zh = language == "zh"
    parts = [say_code(now.code, language), say_degrees(now.temperature, unit)]
    if now.feels_like is not None:
        parts.append(("体感 " if zh else "feels like ") + say_degrees(now.feels_like, unit))
    if now.humidity is not None:
        parts.append(("湿度 " if zh else "humidity ") + f"{now.humidity:.0f}%")
    if now.wind_speed is not None:
        wind = "" if now.wind_from is None else WINDS[language][round(now.wind_from / 45) % 8] + " "
        parts.append(("" if zh and wind else "风速 " if zh else "wind ") + f"{wind}{now.wind_speed:.1f} m/s")
    return ("，" if zh else ", ").join(parts)


def _say_day(day: Day, today: dt.date, unit: Unit, language: Language) -> str:
    zh = language == "zh"
    away = (day.date - today).days
    name = f"{DAY_NAMES[language][away]} " if 0 <= away < 3 else ""
    parts = [say_code(day.code, language)]
    if day.low is not None and day.high is not None:
        parts.append(f"{say_degrees(day.low, unit)} ~ {say_degrees(day.high, unit)}")
    if day.rain_chance is not None:
        parts.append(("降水概率 " if zh else "chance of rain ") + f"{day.rain_chance:.0f}%")
    return f"{name}{day.date:%m-%d}" + ("：" if zh else ": ") + ("，" if zh else ", ").join(parts)


def _list_paths(places: Sequence[Place], language: Language) -> str:
    return "\n".join(f"{number}. {say_path(place, language)}" for number, place in enumerate(places, 1))
