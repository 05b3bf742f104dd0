"""QWeather (和风天气), version 1, at the operator's own host (`docs/protocol/sources.md` 1.6).

Pitfalls: latitude comes first in the path, with at most two decimals; humidity and probability are
fractions; current weather has no time; errors are problem+json, and an account that ignores 401 or
403 may be frozen.
"""

from __future__ import annotations

import asyncio
import datetime as dt
from typing import Any

from pydantic import AwareDatetime, ConfigDict
from pydantic.alias_generators import to_camel

from bot.core.ports import WebResponse
from tools.get_weather.requests import (
    DAYS,
    FOR_GOOD,
    Fetched,
    SourceFailed,
    W,
    WeatherQuestion,
    Wire,
    localise,
    read,
    refusal,
    said,
    tidy,
)
from tools.get_weather.weather import Alert, Day, Hour, Now, Weather, read_chinese, read_english

NAME = "和风天气 QWeather"
CREDIT = "天气数据：和风天气 https://www.qweather.com"
HOURS = 24
REFUSED = frozenset({401, 402, 403})  # also as the `code` in a 200, in older answers


class _Wire(Wire):
    model_config = ConfigDict(alias_generator=to_camel)


class _Number(_Wire):
    value: float


class _Condition(_Wire):
    text: str = ""


class _Direction(_Wire):
    degree: float | None = None


class _Wind(_Wire):
    direction: _Direction = _Direction()
    speed: _Number | None = None


class _Rain(_Wire):
    amount: _Number | None = None
    probability: float | None = None


class _QWeatherCurrent(_Wire):
    condition: _Condition = _Condition()
    temperature: _Number
    feels_like: _Number | None = None
    humidity: float | None = None
    wind: _Wind = _Wind()


class _HalfDay(_Wire):
    condition: _Condition = _Condition()
    precipitation: _Rain = _Rain()


class _QWeatherDay(_Wire):
    forecast_start_time: AwareDatetime
    temperature_max: _Number | None = None
    temperature_min: _Number | None = None
    daytime: _HalfDay = _HalfDay()
    nighttime: _HalfDay = _HalfDay()


class _QWeatherDaily(_Wire):
    days: list[_QWeatherDay]


class _QWeatherHour(_Wire):
    forecast_time: AwareDatetime
    condition: _Condition = _Condition()
    temperature: _Number
    precipitation: _Rain = _Rain()


class _QWeatherHourly(_Wire):
    hours: list[_QWeatherHour]


class _Alert(_Wire):
    headline: str
    description: str | None = None
    expire_time: dt.datetime | None = None


class _Alerts(_Wire):
    alerts: list[_Alert]


async def fetch_weather(question: WeatherQuestion) -> Fetched:
    """Current weather and days; hours and warnings if available. Raises SourceFailed."""
    async with asyncio.TaskGroup() as group:
        now = group.create_task(_try(question, "weather/v1/current", _QWeatherCurrent))
        days = group.create_task(_try(question, "weather/v1/daily", _QWeatherDaily, days=str(DAYS)))
        hours = group.create_task(
            _try(question, "weather/v1/hourly", _QWeatherHourly, hours=str(HOURS))
        )
        alerts = group.create_task(_try(question, "weatheralert/v1/current", _Alerts))
    zone = question.place.zone
    weather = Weather(
        now=_read_now(_needed(now.result()), question.local_now),
        days=tuple(_read_day(day, zone) for day in _needed(days.result()).days[:DAYS]),
        hours=tuple(_read_hour(hour, zone) for hour in _hours(hours.result())),
        alerts=_read_alerts(alerts.result(), zone),
        zone=zone,
        credit=CREDIT,
        source=NAME,
    )
    return Fetched(weather)


async def _try(
    question: WeatherQuestion, path: str, kind: type[W], **params: str
) -> W | SourceFailed:
    """One of the four answers; failures are values, because not all four are needed."""
    place = question.place
    url = f"https://{question.keys.qweather_host}/{path}/{place.latitude:.2f}/{place.longitude:.2f}"
    params |= {"lang": "zh", "localTime": "true"}
    try:
        headers = question.keys.qweather_headers(question.now)
        response = await question.get(NAME, url, kind=kind, params=params, headers=headers)
        if response.status in REFUSED or _code_of(response) in REFUSED:
            raise refusal(NAME, response, said(response, _reason), rest=FOR_GOOD)
        return read(NAME, kind, response, _reason)
    except SourceFailed as error:
        return error


def _needed(outcome: W | SourceFailed) -> W:
    if isinstance(outcome, SourceFailed):
        raise outcome
    return outcome


def _read_now(wire: _QWeatherCurrent, time: dt.datetime) -> Now:
    return Now(
        time=time,
        code=_code(wire.condition),
        text=_words(wire.condition),
        temperature=wire.temperature.value,
        feels_like=None if wire.feels_like is None else wire.feels_like.value,
        humidity=_percent(wire.humidity),
        wind_speed=None if wire.wind.speed is None else wire.wind.speed.value,
        wind_from=wire.wind.direction.degree,
    )


def _read_day(wire: _QWeatherDay, zone: str) -> Day:
    """Days begin at local midnight, in any offset; noon is safely inside."""
    by_day, by_night = wire.daytime, wire.nighttime
    words = _words(by_day.condition), _words(by_night.condition)
    chances = [half.precipitation.probability for half in (by_day, by_night)]
    return Day(
        date=localise(wire.forecast_start_time + dt.timedelta(hours=12), zone).date(),
        code=_code(by_day.condition),
        text="转".join(dict.fromkeys(filter(None, words))),
        low=None if wire.temperature_min is None else wire.temperature_min.value,
        high=None if wire.temperature_max is None else wire.temperature_max.value,
        rain_chance=_percent(
            max((chance for chance in chances if chance is not None), default=None)
        ),
    )


def _hours(outcome: _QWeatherHourly | SourceFailed) -> list[_QWeatherHour]:
    return [] if isinstance(outcome, SourceFailed) else outcome.hours


def _read_hour(wire: _QWeatherHour, zone: str) -> Hour:
    return Hour(
        time=localise(wire.forecast_time, zone),
        temperature=wire.temperature.value,
        code=_code(wire.condition),
        text=_words(wire.condition),
        rain_chance=_percent(wire.precipitation.probability),
    )


def _read_alerts(outcome: _Alerts | SourceFailed, zone: str) -> tuple[Alert, ...] | None:
    if isinstance(outcome, SourceFailed):
        return None
    return tuple(
        Alert(
            tidy(alert.headline),
            tidy(alert.description or "", 300),
            _local(alert.expire_time, zone),
        )
        for alert in outcome.alerts
    )


def _code(condition: _Condition) -> int | None:
    """The WMO code from the text, in either language: QWeather's own codes are finer."""
    code = read_chinese(condition.text)
    return read_english(condition.text) if code is None else code


def _words(condition: _Condition) -> str:
    return tidy(condition.text, 20) if read_chinese(condition.text) is not None else ""


def _percent(fraction: float | None) -> float | None:
    return None if fraction is None else fraction * 100


def _local(time: dt.datetime | None, zone: str) -> dt.datetime | None:
    """A time without an offset is local already."""
    return time if time is None or time.tzinfo is None else localise(time, zone)


def _code_of(response: WebResponse) -> int:
    """The `code` of an older body; 0 if there is none."""
    try:
        return int(response.json()["code"])
    except (ValueError, TypeError, LookupError):
        return 0


def _reason(body: Any) -> str:
    return f"code {body['code']}" if "code" in body else str(body["error"]["title"])
