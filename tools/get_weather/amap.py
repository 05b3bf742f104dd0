"""AMap (高德), by adcode, with the operator's key (`docs/protocol/sources.md` 1.7): mainland China
only.

Pitfalls: errors are a 200 with `status: "0"` and an `infocode`; every number is a text, and an
empty one may be `[]`; current weather and forecast are two requests. The key is in the URL, so the
URL must never be shown.
"""

from __future__ import annotations

import asyncio
import datetime as dt
from typing import Any

from pydantic import NaiveDatetime

from tools.get_weather.requests import (
    A_DAY,
    A_MINUTE,
    FOR_GOOD,
    Fetched,
    SourceFailed,
    W,
    WeatherQuestion,
    Wire,
    read,
    tidy,
)
from tools.get_weather.weather import Day, Now, Weather, read_chinese, read_wind

NAME = "高德 AMap"
URL = "https://restapi.amap.com/v3/weather/weatherInfo"
CREDIT = "天气数据：高德开放平台"

# Rest times by infocode; other codes are temporary.
REST = {
    "10001": FOR_GOOD,  # no such key
    "10009": FOR_GOOD,  # a key for another platform
    "10003": A_DAY / 2,  # today's quota is used up
    "10044": A_DAY / 2,  # the account's daily quota
    "20000": 0.0,  # wrong parameters: this place only
}


class _Status(Wire):
    status: str = ""
    info: str = ""
    infocode: str = ""
    code: Any = ""


class _Live(Wire):
    weather: Any = ""
    temperature: float
    winddirection: Any = ""
    windpower: Any = ""
    humidity: Any = None
    reporttime: NaiveDatetime


class _Base(Wire):
    lives: list[_Live]


class _Cast(Wire):
    date: dt.date
    dayweather: Any = ""
    nightweather: Any = ""
    daytemp: float | None = None
    nighttemp: float | None = None


class _AmapForecast(Wire):
    casts: list[_Cast]


class _All(Wire):
    forecasts: list[_AmapForecast]


async def fetch_weather(question: WeatherQuestion) -> Fetched:
    """The current weather and four days. Raises SourceFailed."""
    async with asyncio.TaskGroup() as group:
        base = group.create_task(_try(question, _Base, "base"))
        rest = group.create_task(_try(question, _All, "all"))
    lives = _needed(base.result()).lives
    forecasts = _needed(rest.result()).forecasts
    if not lives or not forecasts:
        raise SourceFailed(f"{NAME} has nothing for this place", rest=0)
    days = tuple(_read_day(cast) for cast in forecasts[0].casts)
    weather = Weather(
        now=_read_now(lives[0]), days=days, zone=question.place.zone, credit=CREDIT, source=NAME
    )
    return Fetched(weather)


async def _try(question: WeatherQuestion, kind: type[W], extensions: str) -> W | SourceFailed:
    """One of the two answers, or its failure: both tasks must end."""
    params = {
        "key": question.keys.amap_key,
        "city": question.place.adcode,
        "extensions": extensions,
        "output": "JSON",
    }
    try:
        response = await question.get(NAME, URL, kind=kind, params=params)
        status = read(NAME, _Status, response)
        if status.status != "1":
            raise _refusal(status)
        return read(NAME, kind, response)
    except SourceFailed as error:
        return error


def _refusal(status: _Status) -> SourceFailed:
    """The refusal in a body, documented or not."""
    code = tidy(status.infocode or str(status.code))
    if not code:
        return SourceFailed(f"{NAME} sent an answer that cannot be read")
    words = f"{tidy(status.info)} ({code})".strip()
    return SourceFailed(f"{NAME} refused: {words}", rest=REST.get(status.infocode, A_MINUTE))


def _needed(outcome: W | SourceFailed) -> W:
    if isinstance(outcome, SourceFailed):
        raise outcome
    return outcome


def _read_now(wire: _Live) -> Now:
    return Now(
        time=wire.reporttime,
        code=read_chinese(_text(wire.weather)),
        text=_text(wire.weather),
        temperature=wire.temperature,
        humidity=_number(wire.humidity),
        wind_from=read_wind(_text(wire.winddirection)),
        force=_text(wire.windpower),
    )


def _read_day(wire: _Cast) -> Day:
    """Day temperature as high, night temperature as low."""
    by_day, by_night = _text(wire.dayweather), _text(wire.nightweather)
    figures = [figure for figure in (wire.daytemp, wire.nighttemp) if figure is not None]
    return Day(
        date=wire.date,
        code=read_chinese(by_day),
        text="转".join(dict.fromkeys(filter(None, (by_day, by_night)))),
        low=min(figures, default=None),
        high=max(figures, default=None),
    )


def _text(value: Any) -> str:
    return tidy(value, 20) if isinstance(value, str) else ""


def _number(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError):
        return None
