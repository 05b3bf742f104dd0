"""Open-Meteo: its geocoder and its forecast, without a key (`shared/sources/facts.md` 1.1 and 1.3).

Traps it answers for: no match is a 200 without `results`; empty and zero fields are left out, a latitude of 0
included; a request it does not understand may be a 200 with no body; errors are `{"error": true, "reason": ...}`.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from bot.domain.errors import ToolFailed
from bot.domain.ports import Web, WebResponse
from tools.get_weather.places import Place, Query
from tools.get_weather.weather import Day, Now, Weather

GEOCODER = "https://geocoding-api.open-meteo.com/v1/search"
FORECAST = "https://api.open-meteo.com/v1/forecast"
CREDIT = "Weather data by Open-Meteo.com; places by GeoNames"  # CC BY 4.0, both
FRESH = 600.0
DAYS = 3

# Ten variables: a request with more counts as more than one.
CURRENT = (
    "temperature_2m", "apparent_temperature", "relative_humidity_2m", "weather_code", "wind_speed_10m",
    "wind_direction_10m",
)  # fmt: skip
DAILY = ("weather_code", "temperature_2m_max", "temperature_2m_min", "precipitation_probability_max")

METRES_A_SECOND = {"m/s": 1.0, "km/h": 1 / 3.6, "mp/h": 0.44704, "kn": 0.514444}


class _Wire(BaseModel):
    model_config = ConfigDict(allow_inf_nan=False)


class _Row(_Wire):
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


class _Rows(_Wire):
    error: Literal[False] = False
    results: list[Any] = []


class _Current(_Wire):
    time: dt.datetime
    temperature_2m: float
    apparent_temperature: float | None = None
    relative_humidity_2m: float | None = None
    weather_code: int | None = None
    wind_speed_10m: float | None = None
    wind_direction_10m: float | None = None


class _Daily(_Wire):
    time: list[dt.date] = []
    weather_code: list[int | None] = []
    temperature_2m_max: list[float | None] = []
    temperature_2m_min: list[float | None] = []
    precipitation_probability_max: list[float | None] = []


class _Forecast(_Wire):
    timezone: str = ""
    current: _Current
    current_units: dict[str, str] = {}
    daily: _Daily = _Daily()


W = TypeVar("W", bound=_Wire)


async def find_places(web: Web, query: Query, spelling: str) -> tuple[Place, ...]:
    """What the geocoder offers for one spelling of the name, best first. Raises ToolFailed."""
    count = "100" if query.within else "20"  # a namesake in a given region may rank low
    params = {"name": spelling, "count": count, "language": query.language, "format": "json"}
    rows = await _ask(web, GEOCODER, params, _Rows)
    return tuple(place for row in rows.results if (place := _read_place(row)) is not None)


async def fetch_weather(web: Web, place: Place) -> Weather:
    """The weather of a place, now and for three days. Raises ToolFailed."""
    params = {
        "latitude": f"{place.latitude:.4f}",
        "longitude": f"{place.longitude:.4f}",
        "current": ",".join(CURRENT),
        "daily": ",".join(DAILY),
        "timezone": "auto",  # without it "today" is Greenwich's
        "forecast_days": str(DAYS),
        "wind_speed_unit": "ms",
    }
    return _read_weather(await _ask(web, FORECAST, params, _Forecast))


def _read_place(row: Any) -> Place | None:
    """A row of `results`; None for one that cannot be a place."""
    try:
        wire = _Row.model_validate(row)
    except ValidationError:
        return None
    if abs(wire.latitude) > 90 or abs(wire.longitude) > 180:
        return None
    regions = (wire.admin1, wire.admin2, wire.admin3, wire.admin4)
    return Place(
        id=wire.id,
        name=_tidy(wire.name),
        latitude=wire.latitude,
        longitude=wire.longitude,
        country=_tidy(wire.country),
        country_code=wire.country_code,
        regions=tuple(_tidy(region) for region in regions if region),
        feature=wire.feature_code,
        population=wire.population,
    )


def _read_weather(wire: _Forecast) -> Weather:
    """Units are read, not assumed: a mirror may answer in others than were asked for."""
    current, daily, units = wire.current, wire.daily, wire.current_units
    wind = METRES_A_SECOND.get(units.get("wind_speed_10m", "m/s"))
    now = Now(
        time=current.time,
        code=current.weather_code,
        temperature=current.temperature_2m,
        feels_like=current.apparent_temperature,
        humidity=current.relative_humidity_2m,
        wind_speed=None if wind is None or current.wind_speed_10m is None else current.wind_speed_10m * wind,
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
    return Weather(now=now, days=days, zone=_tidy(wire.timezone), credit=CREDIT)


async def _ask(web: Web, url: str, params: Mapping[str, str], kind: type[W]) -> W:
    response = await web.get(url, params=params, fresh=FRESH, keep=lambda response: _reads(kind, response))
    if response.status != 200:
        raise ToolFailed(f"Open-Meteo answered {response.status}{_reason(response)}")
    try:
        return kind.model_validate_json(response.body)
    except ValidationError as error:
        raise ToolFailed(f"Open-Meteo sent an answer that cannot be read{_reason(response)}") from error


def _reads(kind: type[_Wire], response: WebResponse) -> bool:
    try:
        kind.model_validate_json(response.body)
    except ValidationError:
        return False
    return True


def _reason(response: WebResponse) -> str:
    """What the vendor says went wrong, as ": reason", or nothing."""
    try:
        body = response.json()
    except ValueError:
        return ""
    reason = body.get("reason") if isinstance(body, dict) else None
    return f": {_tidy(reason)}" if isinstance(reason, str) else ""


def _tidy(text: str) -> str:
    """A vendor's words as one short line: they go to a model."""
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())[:120]


def _at(values: list[Any], index: int) -> Any:
    return values[index] if index < len(values) else None
