"""What every source of weather must bring: degrees Celsius, metres a second, percent, WMO weather codes."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Now:
    """The weather at `time` (local to the place). What a source does not say is None."""

    time: dt.datetime
    code: int | None
    temperature: float
    feels_like: float | None = None
    humidity: float | None = None
    wind_speed: float | None = None
    wind_from: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Day:
    """One day of the forecast; `rain_chance` in percent."""

    date: dt.date
    code: int | None = None
    low: float | None = None
    high: float | None = None
    rain_chance: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Weather:
    """A place's weather; `zone` names its time zone, `credit` is what the source's licence wants to be said."""

    now: Now
    days: tuple[Day, ...]
    zone: str
    credit: str
