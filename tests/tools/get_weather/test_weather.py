"""The words every source of weather speaks."""

from __future__ import annotations

import datetime as dt

from tools.get_weather.weather import Day, Now, Weather


def test_what_a_source_does_not_say_is_none() -> None:
    now = Now(time=dt.datetime.fromisoformat("2026-11-21T22:15"), code=None, temperature=3.4)
    weather = Weather(now=now, days=(Day(date=dt.date(2026, 11, 21)),), zone="Asia/Shanghai", credit="somebody")
    assert weather.now.feels_like is None
    assert weather.days[0].rain_chance is None
