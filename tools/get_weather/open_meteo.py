"""Open-Meteo: its geocoder and forecast, without a key (`docs/protocol/sources.md` 1.1 and 1.3).

Pitfalls: no match is a 200 without `results`; empty and zero fields are omitted, even a latitude of
0; an invalid request may be a 200 without a body; errors are `{"error": true, "reason": ...}`; a
used-up quota is a 429 whose text says until when.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Literal

from pydantic import Field, NaiveDatetime, ValidationError

from bot.core.ports import Web, WebResponse
from tools.get_weather.places import Query, WeatherPlace
from tools.get_weather.requests import (
    A_DAY,
    A_MINUTE,
    AN_HOUR,
    DAYS,
    FRESH,
    Fetched,
    W,
    WeatherQuestion,
    Wire,
    holds,
    read,
    refusal,
    said,
    tidy,
)
from tools.get_weather.weather import Day, Hour, Now, Weather

NAME = "Open-Meteo"
GEOCODER = "https://geocoding-api.open-meteo.com/v1/search"
FORECAST = "https://api.open-meteo.com/v1/forecast"
CREDIT = "Weather data by Open-Meteo.com; places by GeoNames"  # both CC BY 4.0

# Thirteen variables count as 1.3 requests; up to ten count as one.
CURRENT = (
    "temperature_2m", "apparent_temperature", "relative_humidity_2m", "weather_code",
    "wind_speed_10m", "wind_direction_10m",
)  # fmt: skip
HOURLY = ("temperature_2m", "precipitation_probability", "weather_code")
DAILY = (
    "weather_code",
    "temperature_2m_max",
    "temperature_2m_min",
    "precipitation_probability_max",
)

METRES_A_SECOND = {"m/s": 1.0, "km/h": 1 / 3.6, "mp/h": 0.44704, "kn": 0.514444}


class _Row(Wire):
    id: int
    name: str
    latitude: float = 0.0
    longitude: float = 0.0
    country: str = ""
    country_code: str = ""
    admin1: str = ""
    admin2: str = ""
    admin3: str = ""
    admin4: str = ""
    feature_code: str = ""
    population: int = 0
    timezone: str = ""


class _Rows(Wire):
    error: Literal[False] = False
    results: tuple[Any, ...] = ()


class _OpenMeteoCurrent(Wire):
    time: NaiveDatetime
    temperature_2m: float
    apparent_temperature: float | None = None
    relative_humidity_2m: float | None = None
    weather_code: int | None = None
    wind_speed_10m: float | None = None
    wind_direction_10m: float | None = None


class _OpenMeteoHourly(Wire):
    time: tuple[NaiveDatetime, ...] = ()
    temperature_2m: tuple[float | None, ...] = ()
    precipitation_probability: tuple[float | None, ...] = ()
    weather_code: tuple[int | None, ...] = ()


class _OpenMeteoDaily(Wire):
    time: tuple[dt.date, ...] = ()
    weather_code: tuple[int | None, ...] = ()
    temperature_2m_max: tuple[float | None, ...] = ()
    temperature_2m_min: tuple[float | None, ...] = ()
    precipitation_probability_max: tuple[float | None, ...] = ()


class _OpenMeteoForecast(Wire):
    timezone: str = ""
    current: _OpenMeteoCurrent
    current_units: Mapping[str, str] = Field(default_factory=dict)
    hourly: _OpenMeteoHourly = _OpenMeteoHourly()
    daily: _OpenMeteoDaily = _OpenMeteoDaily()


async def find_places(web: Web, query: Query, spelling: str) -> tuple[WeatherPlace, ...]:
    """The geocoder's places for one spelling, best first. Raises ToolFailed."""
    count = "100" if query.within else "20"  # a namesake in a given region may rank low
    params = {"name": spelling, "count": count, "language": query.language, "format": "json"}
    response = await web.get(GEOCODER, params=params, fresh=FRESH, keep=partial(holds, _Rows))
    rows = _read(_Rows, response)
    return tuple(place for row in rows.results if (place := _read_place(row)) is not None)


async def fetch_weather(question: WeatherQuestion) -> Fetched:
    """The current weather and seven days. Raises SourceFailed."""
    params = {
        "latitude": f"{question.place.latitude:.4f}",
        "longitude": f"{question.place.longitude:.4f}",
        "current": ",".join(CURRENT),
        "hourly": ",".join(HOURLY),
        "daily": ",".join(DAILY),
        "timezone": "auto",  # otherwise "today" is Greenwich's
        "forecast_days": str(DAYS),
        "wind_speed_unit": "ms",
    }
    return Fetched(
        _read_weather(
            _read(
                _OpenMeteoForecast,
                await question.get(NAME, FORECAST, kind=_OpenMeteoForecast, params=params),
            )
        )
    )


def _read_place(row: Any) -> WeatherPlace | None:
    """A row of `results`; None if it cannot be a place."""
    try:
        wire = _Row.model_validate(row)
    except ValidationError:
        return None
    if abs(wire.latitude) > 90 or abs(wire.longitude) > 180:
        return None
    regions = (wire.admin1, wire.admin2, wire.admin3, wire.admin4)
    return WeatherPlace(
        id=wire.id,
        name=tidy(wire.name),
        latitude=wire.latitude,
        longitude=wire.longitude,
        country=tidy(wire.country),
        country_code=wire.country_code,
        regions=tuple(tidy(region) for region in regions if region),
        feature=wire.feature_code,
        population=wire.population,
        zone=tidy(wire.timezone),
    )


def _read_weather(wire: _OpenMeteoForecast) -> Weather:
    """Units are read from the answer: a mirror may not use those requested."""
    current, daily, units = wire.current, wire.daily, wire.current_units
    wind = METRES_A_SECOND.get(units.get("wind_speed_10m", "m/s"))
    now = Now(
        time=current.time,
        code=current.weather_code,
        temperature=current.temperature_2m,
        feels_like=current.apparent_temperature,
        humidity=current.relative_humidity_2m,
        wind_speed=None
        if wind is None or current.wind_speed_10m is None
        else current.wind_speed_10m * wind,
        wind_from=current.wind_direction_10m,
    )
    days = tuple(
        Day(
            date=date,
            code=_at(daily.weather_code, index),
            low=_at(daily.temperature_2m_min, index),
            high=_at(daily.temperature_2m_max, index),
            rain_chance=_at(daily.precipitation_probability_max, index),
        )
        for index, date in enumerate(daily.time[:DAYS])
    )
    return Weather(
        now=now,
        days=days,
        hours=_read_hours(wire.hourly),
        zone=tidy(wire.timezone),
        credit=CREDIT,
        source=NAME,
    )


def _read_hours(hourly: _OpenMeteoHourly) -> tuple[Hour, ...]:
    return tuple(
        Hour(
            time=time,
            temperature=temperature,
            code=_at(hourly.weather_code, index),
            rain_chance=_at(hourly.precipitation_probability, index),
        )
        for index, time in enumerate(hourly.time)
        if (temperature := _at(hourly.temperature_2m, index)) is not None
    )


def _read(kind: type[W], response: WebResponse) -> W:
    if response.status == 429:
        words = said(response, _reason)
        rest = A_DAY / 2 if "Daily" in words else AN_HOUR if "Hourly" in words else A_MINUTE
        raise refusal(NAME, response, words, rest=rest)
    return read(NAME, kind, response, _reason)


def _reason(body: Any) -> str:
    return str(body["reason"]) if isinstance(body["reason"], str) else ""


def _at(values: Sequence[Any], index: int) -> Any:
    return values[index] if index < len(values) else None
