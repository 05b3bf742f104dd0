"""wttr.in, the last resort, without a key (`docs/protocol/sources.md` 1.5). By coordinates, because
its names are unreliable.

Pitfalls: every number is a text; an overloaded server says "Unknown location" in a 200 that claims
to be JSON; newer builds wrap everything in `data`.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Any

from pydantic import Field, model_validator

from tools.get_weather.requests import (
    Fetched,
    SourceFailed,
    WeatherQuestion,
    Wire,
    localise,
    read,
    tidy,
)
from tools.get_weather.weather import Day, Hour, Now, Weather, read_english

NAME = "wttr.in"
URL = "https://wttr.in"
CREDIT = "Weather data by wttr.in / World Weather Online"
KMH = 1 / 3.6
NOON = 1200


class _Word(Wire):
    value: str = ""


class _WttrCurrent(Wire):
    temperature: float = Field(alias="temp_C")
    feels_like: float | None = Field(None, alias="FeelsLikeC")
    humidity: float | None = None
    wind_speed: float | None = Field(None, alias="windspeedKmph")
    wind_from: float | None = Field(None, alias="winddirDegree")
    words: tuple[_Word, ...] = Field((), alias="weatherDesc")
    observed: str = Field("", alias="localObsDateTime")


class _WttrHour(Wire):
    time: int
    temperature: float = Field(alias="tempC")
    rain: float | None = Field(None, alias="chanceofrain")
    snow: float | None = Field(None, alias="chanceofsnow")
    words: tuple[_Word, ...] = Field((), alias="weatherDesc")


class _WttrDay(Wire):
    date: dt.date
    high: float | None = Field(None, alias="maxtempC")
    low: float | None = Field(None, alias="mintempC")
    hourly: tuple[_WttrHour, ...] = ()


class _Report(Wire):
    current_condition: list[_WttrCurrent]
    weather: tuple[_WttrDay, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def unwrap(cls, body: Any) -> Any:
        """Unwrap the `data` of newer builds."""
        return (
            body["data"] if isinstance(body, dict) and isinstance(body.get("data"), dict) else body
        )


async def fetch_weather(question: WeatherQuestion) -> Fetched:
    """The current weather and three days. Raises SourceFailed."""
    place = question.place
    url = f"{URL}/{place.latitude:.2f},{place.longitude:.2f}"
    wire = read(NAME, _Report, await question.get(NAME, url, kind=_Report, params={"format": "j1"}))
    if not wire.current_condition:
        raise SourceFailed(f"{NAME} has nothing for now")
    days = tuple(_read_day(day) for day in wire.weather)
    hours = tuple(_read_hour(day.date, hour) for day in wire.weather for hour in day.hourly)
    now = _read_now(wire.current_condition[0], question.local_now)
    weather = Weather(now=now, days=days, hours=hours, zone=place.zone, credit=CREDIT, source=NAME)
    return Fetched(weather)


def _read_now(wire: _WttrCurrent, local_now: dt.datetime) -> Now:
    try:
        # Local to the place; read as if it were UTC, so that it stays unchanged.
        time = localise(
            dt.datetime.strptime(f"{wire.observed} +0000", "%Y-%m-%d %I:%M %p %z"), "UTC"
        )
    except ValueError:
        time = local_now
    return Now(
        time=time,
        code=_code(wire.words),
        temperature=wire.temperature,
        feels_like=wire.feels_like,
        humidity=wire.humidity,
        wind_speed=None if wire.wind_speed is None else wire.wind_speed * KMH,
        wind_from=wire.wind_from,
    )


def _read_day(wire: _WttrDay) -> Day:
    chances = [chance for hour in wire.hourly for chance in (hour.rain, hour.snow)]
    noon = min(wire.hourly, key=lambda hour: abs(hour.time - NOON), default=None)
    return Day(
        date=wire.date,
        code=None if noon is None else _code(noon.words),
        low=wire.low,
        high=wire.high,
        rain_chance=max((chance for chance in chances if chance is not None), default=None),
    )


def _read_hour(date: dt.date, wire: _WttrHour) -> Hour:
    """`time` is "0", "300" ... "2100"."""
    chances = [chance for chance in (wire.rain, wire.snow) if chance is not None]
    return Hour(
        time=dt.datetime.combine(date, dt.time(wire.time // 100 % 24)),
        temperature=wire.temperature,
        code=_code(wire.words),
        rain_chance=max(chances, default=None),
    )


def _code(words: Sequence[_Word]) -> int | None:
    return read_english(tidy(words[0].value)) if words else None
