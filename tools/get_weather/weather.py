"""A weather, as every source must bring it: degrees Celsius, metres a second, percent, millimetres,
WMO weather codes.

What a source does not say is None, empty or left out; nobody fills it in. Times are local to the
place, without offset.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Now:
    """The weather at `time`. `text` is the source's own Chinese word, `force` the wind by Beaufort
    ("≤3").
    """

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
    """The forecast for the hour that begins at `time`; `rain_chance` in percent, `rain` in
    millimetres.
    """

    time: dt.datetime
    temperature: float
    code: int | None = None
    text: str = ""
    rain_chance: float | None = None
    rain: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Day:
    """One day of the forecast; `rain_chance` in percent, `rain` in millimetres."""

    date: dt.date
    code: int | None = None
    text: str = ""
    low: float | None = None
    high: float | None = None
    rain_chance: float | None = None
    rain: float | None = None


@dataclass(frozen=True, slots=True)
class Alert:
    """A warning of the authorities: its title, what it says, until when (local, None where
    unknown).
    """

    title: str
    detail: str = ""
    until: dt.datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Weather:
    """A place's weather; `zone` names its time zone, `credit` is what the source's licence wants to
    be said.

    `alerts` is None where the source has none to tell of, and empty where it says that there are
    none.
    """

    now: Now
    days: tuple[Day, ...]
    zone: str
    credit: str
    source: str = ""
    hours: tuple[Hour, ...] = ()
    alerts: tuple[Alert, ...] | None = None
