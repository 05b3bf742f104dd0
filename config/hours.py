"""Hours of the day, as people write them, 23:30-07:30, and the time zone they are of."""

from __future__ import annotations

import re
from pathlib import Path
from zoneinfo import ZoneInfo

from config.values import SEPARATORS, Wrong, halved, shown

DAY = 24 * 60  # minutes
SPAN = re.compile(r"([0-9]{1,2}):([0-5][0-9])-([0-9]{1,2}):([0-5][0-9])")
AROUND_DASH = re.compile(r"\s*[-–—~～至到]\s*")  # as people type it
TIME = re.compile(r"([01]?[0-9]|2[0-3]):([0-5][0-9])", re.ASCII)
NEVER = frozenset({"0", "off"})
MEND = "Write it as 23:30-07:30"
RULE = re.compile(r"(<[^>]+>|[A-Za-z]{3,})[+-]?[0-9].*")  # CST-8: needs no table of zones


def hours(value: object) -> tuple[tuple[int, int], ...]:
    """Spans of the day, as in `23:30-07:30, 12:00-13:30` -> where each begins and ends, in minutes
    since midnight.
    """
    if isinstance(value, tuple):
        return value
    if not isinstance(value, str):
        raise Wrong(f"{shown(value)} is no time of the day", MEND)
    return tuple(
        _span(text) for text in SEPARATORS.split(AROUND_DASH.sub("-", halved(value))) if text
    )


def _span(text: str) -> tuple[int, int]:
    found = SPAN.fullmatch(text)
    if found is None:
        raise Wrong(f"{shown(text)} is no time of the day", MEND)
    first, second, third, fourth = map(int, found.groups())
    begins, ends = first * 60 + second, third * 60 + fourth
    if max(begins, ends) > DAY or begins % DAY == ends % DAY:
        raise Wrong(f"{shown(text)} is no part of a day", MEND)
    return begins % DAY, ends % DAY


def time_of_day(value: object) -> float | None:
    """A time of day as in 09:00, in seconds after midnight; None for 0, which is never."""
    if value is None or isinstance(value, float):
        return value
    text = halved(str(value))
    if text.casefold() in NEVER:
        return None
    if not (found := TIME.fullmatch(text)):
        raise Wrong(f"{shown(text)} is no time of day", "Write it as 09:00, or 0 for never")
    return 3600.0 * int(found[1]) + 60.0 * int(found[2])


def zone(value: str) -> str:
    """A time zone as TZ names it. The C library would take any other text for UTC, silently."""
    text = halved(value)
    name = text.removeprefix(":")
    is_file = name.startswith("/") and Path(name).is_file()
    if not name or name == "UTC" or RULE.fullmatch(name) or is_file:
        return text
    try:
        ZoneInfo(name)
    except (LookupError, ValueError, OSError):
        raise Wrong(f"{shown(text)} is no time zone", "Write it as Asia/Shanghai") from None
    return text
