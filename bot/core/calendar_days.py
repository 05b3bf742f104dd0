"""Calendar days, in the time zone of the process (TZ)."""

from __future__ import annotations

import time

HOUR = 3600.0


def midnight(now: float, *, later: int = 0) -> float:
    """The beginning of the day that contains `now`, or of the day `later` days after it, in seconds
    since 1970. Days may have 23 or 25 hours; a day without a midnight begins with its first moment.
    """
    local = time.localtime(now)
    day = (local.tm_year, local.tm_mon, local.tm_mday + later)
    noon = time.localtime(time.mktime((*day, 12, 0, 0, 0, 0, -1)))
    begin = time.mktime((noon.tm_year, noon.tm_mon, noon.tm_mday, 0, 0, 0, 0, 0, -1))
    while time.localtime(begin).tm_mday != noon.tm_mday:
        begin += HOUR
    while time.localtime(begin - 1).tm_mday == noon.tm_mday:
        begin -= HOUR
    return begin


def time_of_day(now: float, after: float) -> float:
    """The moment of that day at which the wall clock shows `after` seconds after midnight."""
    day = time.localtime(now)
    hour, minute = divmod(int(after) // 60, 60)
    return time.mktime((day.tm_year, day.tm_mon, day.tm_mday, hour, minute, 0, 0, 0, -1))
