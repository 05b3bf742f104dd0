from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from bot.core.calendar_days import HOUR, midnight, time_of_day


@pytest.fixture(params=["Asia/Shanghai", "Europe/Berlin", "America/Havana", "Africa/Cairo", "America/New_York"])
def zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    name: str = request.param
    monkeypatch.setenv("TZ", name)
    time.tzset()
    yield name
    monkeypatch.undo()
    time.tzset()


def test_a_day_begins_with_its_first_moment_and_ends_with_the_next_days_also_when_the_clocks_change(zone: str) -> None:
    where, begin = ZoneInfo(zone), datetime(2026, 1, 1, 12, tzinfo=ZoneInfo(zone)).timestamp()
    lengths = set()
    for hour in range(0, 366 * 24, 5):
        now = begin + hour * HOUR
        today, tomorrow = midnight(now), midnight(now, later=1)
        assert today <= now < tomorrow
        day = datetime.fromtimestamp(now, where).date()
        assert datetime.fromtimestamp(today, where).date() == day
        assert datetime.fromtimestamp(tomorrow - 1, where).date() == day
        assert datetime.fromtimestamp(today - 1, where).date() < day < datetime.fromtimestamp(tomorrow, where).date()
        lengths.add((tomorrow - today) / HOUR)
    assert lengths == ({24} if zone == "Asia/Shanghai" else {23, 24, 25})


def test_nine_is_nine_by_the_wall_clock_on_every_day(zone: str) -> None:
    where, begin = ZoneInfo(zone), datetime(2026, 1, 1, 12, tzinfo=ZoneInfo(zone)).timestamp()
    for day in range(366):
        now = begin + day * 24 * HOUR
        nine = datetime.fromtimestamp(time_of_day(now, 9 * HOUR + 1800), where)
        assert (nine.date(), nine.hour, nine.minute) == (datetime.fromtimestamp(now, where).date(), 9, 30)
