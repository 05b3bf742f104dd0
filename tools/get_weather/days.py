"""Which days somebody means: "tomorrow", 后天, 周六, 2026-11-24. Pure."""

from __future__ import annotations

import datetime as dt
import re

from bot.domain.errors import InvalidArguments

AHEAD = 7  # days that may be asked for, today included
AWAY = {
    "today": 0, "tonight": 0, "now": 0, "今天": 0, "今日": 0, "今晚": 0, "现在": 0,
    "tomorrow": 1, "明天": 1, "明日": 1, "明晚": 1,
    "后天": 2, "day after tomorrow": 2, "大后天": 3,
}  # fmt: skip
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
CHINESE_WEEKDAY = re.compile(r"(?:这|本|下)?(?:周|星期|礼拜)([一二三四五六日天])")
SAID = {
    "zh": ("今天", "明天", "后天"),
    "en": ("today", "tomorrow", "in 2 days"),
}
SHORT_WEEKDAYS = {
    "zh": ("周一", "周二", "周三", "周四", "周五", "周六", "周日"),
    "en": ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"),
}


def read_day(text: str, today: dt.date) -> dt.date:
    """The day that is meant, at most six days ahead. A weekday is the next of its name. Raises
    InvalidArguments.
    """
    word = " ".join(text.casefold().split())
    if word in AWAY:
        return today + dt.timedelta(days=AWAY[word])
    if (weekday := _weekday(word)) is not None:
        return today + dt.timedelta(days=(weekday - today.weekday()) % 7)
    try:
        date = dt.date.fromisoformat(word)
    except ValueError:
        raise _wrong(
            f"{text[:40]!r} is no day; write a date as 2026-11-24, or today, tomorrow, a weekday"
        ) from None
    if not 0 <= (date - today).days < AHEAD:
        last = today + dt.timedelta(days=AHEAD - 1)
        raise _wrong(f"there is a forecast only from {today} to {last}; tell the user so")
    return date


def _weekday(word: str) -> int | None:
    if found := CHINESE_WEEKDAY.fullmatch(word):
        return "一二三四五六日".index("日" if found[1] == "天" else found[1])
    return WEEKDAYS.index(word) if word in WEEKDAYS else None


def _wrong(problem: str) -> InvalidArguments:
    return InvalidArguments(f"day: {problem}", fields=(f"day: {problem}",))
