"""MET Norway's Locationforecast 2.0, without a key (`docs/protocol/sources.md` 1.4).

Its terms: a User-Agent with contact details, at most four decimals, no request before `Expires`,
then with If-Modified-Since. So an answer is kept until then, and a 304 renews it. Current weather,
hours and days are computed from it each time, because "now" is one of its steps. Days are made of
hours, by local date.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence
from dataclasses import replace
from email.utils import parsedate_to_datetime

from pydantic import AwareDatetime

from bot.core.ports import WebResponse
from tools.get_weather.requests import (
    DAYS,
    FRESH,
    Fetched,
    SourceFailed,
    WeatherQuestion,
    Wire,
    localise,
    read,
)
from tools.get_weather.weather import Day, Hour, Now, Weather, read_symbol

NAME = "MET Norway"
URL = "https://api.met.no/weatherapi/locationforecast/2.0/compact"
CREDIT = "Weather data by MET Norway (CC BY 4.0)"
LONGEST = 3 * 3600.0  # seconds an Expires is believed: a wrong clock must not freeze the weather
NOT_MODIFIED = 304
NOON = 12
MORNING = 6  # a day whose first step is later has no low and high: the past is missing


class _Details(Wire):
    air_temperature: float | None = None
    relative_humidity: float | None = None
    wind_speed: float | None = None
    wind_from_direction: float | None = None


class _Instant(Wire):
    details: _Details = _Details()


class _Summary(Wire):
    symbol_code: str = ""


class _Amount(Wire):
    precipitation_amount: float | None = None


class _Next(Wire):
    summary: _Summary = _Summary()
    details: _Amount = _Amount()


class _Data(Wire):
    instant: _Instant
    next_1_hours: _Next | None = None
    next_6_hours: _Next | None = None
    next_12_hours: _Next | None = None


class _MetStep(Wire):
    time: AwareDatetime
    data: _Data

    @property
    def next(self) -> _Next:
        data = self.data
        return data.next_1_hours or data.next_6_hours or data.next_12_hours or _Next()


class _Properties(Wire):
    timeseries: list[_MetStep]


class _MetForecast(Wire):
    properties: _Properties


async def fetch_weather(question: WeatherQuestion) -> Fetched:
    """Current weather, hours and days; the earlier answer if unchanged. Raises SourceFailed."""
    params = {"lat": f"{question.place.latitude:.2f}", "lon": f"{question.place.longitude:.2f}"}
    earlier = question.earlier
    headers = (
        {"If-Modified-Since": earlier.modified} if earlier is not None and earlier.modified else {}
    )
    response = await question.get(NAME, URL, kind=_MetForecast, params=params, headers=headers)
    fresh = _fresh_for(response, question.now)
    if response.status == NOT_MODIFIED and earlier is not None:
        return replace(earlier, fresh=fresh)
    steps, zone = read(NAME, _MetForecast, response).properties.timeseries, question.place.zone

    def retell(now: float) -> Weather:
        return _read_weather(steps, zone, now)

    return Fetched(retell(question.now), fresh, response.headers.get("last-modified", ""), retell)


def _read_weather(steps: Sequence[_MetStep], zone: str, seconds: float) -> Weather:
    instant = dt.datetime.fromtimestamp(seconds, dt.UTC)
    past = [step for step in steps if step.time <= instant]
    here = past[-1] if past else next(iter(steps), None)
    details = _Details() if here is None else here.data.instant.details
    if here is None or details.air_temperature is None:
        raise SourceFailed(f"{NAME} has no forecast for now")
    now = Now(
        time=localise(here.time, zone),
        code=read_symbol(here.next.summary.symbol_code),
        temperature=details.air_temperature,
        humidity=details.relative_humidity,
        wind_speed=details.wind_speed,
        wind_from=details.wind_from_direction,
    )
    ahead = [step for step in steps if step.time >= here.time]
    hours = tuple(_read_hours(ahead, zone))
    return Weather(
        now=now,
        days=tuple(_read_days(ahead, zone)),
        hours=hours,
        zone=zone,
        credit=CREDIT,
        source=NAME,
    )


def _read_hours(steps: Iterable[_MetStep], zone: str) -> Iterable[Hour]:
    """The hourly steps; later ones cover six hours."""
    for step in steps:
        temperature = step.data.instant.details.air_temperature
        if step.data.next_1_hours is not None and temperature is not None:
            symbol, amount = step.next.summary.symbol_code, step.next.details.precipitation_amount
            time = localise(step.time, zone)
            yield Hour(time=time, temperature=temperature, code=read_symbol(symbol), rain=amount)


def _read_days(steps: Iterable[_MetStep], zone: str) -> Iterable[Day]:
    dates: dict[dt.date, list[tuple[int, _MetStep]]] = {}
    for step in steps:
        local = localise(step.time, zone)
        dates.setdefault(local.date(), []).append((local.hour, step))
    for date, inside in list(dates.items())[:DAYS]:
        whole = inside if inside[0][0] <= MORNING else []
        found = [step.data.instant.details.air_temperature for _, step in whole]
        figures = [figure for figure in found if figure is not None]
        _, noon = min(inside, key=lambda hour: abs(hour[0] - NOON))
        yield Day(
            date=date,
            code=read_symbol(noon.next.summary.symbol_code),
            low=min(figures, default=None),
            high=max(figures, default=None),
            rain=_sum(step for _, step in whole),
        )


def _sum(steps: Iterable[_MetStep]) -> float | None:
    """A day's rain. A step's span counts once: one hour if given, else six."""
    amounts = [
        span.details.precipitation_amount
        for step in steps
        if (span := step.data.next_1_hours or step.data.next_6_hours) is not None
    ]
    known = [amount for amount in amounts if amount is not None]
    return sum(known) if known else None


def _fresh_for(response: WebResponse, now: float) -> float:
    """The seconds until `Expires`, within the limits for all sources."""
    try:
        expires = parsedate_to_datetime(response.headers["expires"]).timestamp()
    except (KeyError, ValueError, TypeError):
        return FRESH
    return min(max(expires - now, FRESH), LONGEST)
