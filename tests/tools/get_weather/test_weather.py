"""The words every source of weather speaks."""

from __future__ import annotations

import datetime as dt

from tools.get_weather.weather import Alert, Day, Hour, Now, Weather

TIME = dt.datetime.fromisoformat("2026-11-21T22:15")


def test_what_a_source_does_not_say_is_none_or_empty() -> None:
    now = Now(time=TIME, code=None, temperature=3.4)
    weather = Weather(now=now, days=(Day(date=TIME.date()),), zone="Asia/Shanghai", credit="somebody")
    assert (weather.now.feels_like, weather.now.text, weather.now.force) == (None, "", "")
    assert (weather.days[0].rain_chance, weather.days[0].rain) == (None, None)
    assert weather.alerts is None
    assert Hour(time=TIME, temperature=1).code is None
    assert Alert("大风蓝色预警").until is None
