"""Which day is meant."""

from __future__ import annotations

import datetime as dt

import pytest

from bot.domain.errors import InvalidArguments
from tests.cases import each_case
from tools.get_weather.report import read_day

SATURDAY = dt.date(2026, 11, 21)


@each_case(
    ("text", "away"),
    [
        ("today", 0), ("Tonight", 0), ("今天", 0), ("tomorrow", 1), ("明天", 1), ("后天", 2), ("大后天", 3),
        ("day after  tomorrow", 2), ("周六", 0), ("周日", 1), ("星期天", 1), ("下周一", 2), ("礼拜五", 6),
        ("Sunday", 1), ("friday", 6), ("2026-11-21", 0), (" 2026-11-27 ", 6),
    ],
)  # fmt: skip
def test_a_day_is_a_word_a_weekday_or_a_date(text: str, away: int) -> None:
    assert read_day(text, SATURDAY) == SATURDAY + dt.timedelta(days=away)


@each_case("text", ["2026-11-20", "2026-11-28", "2030-01-01"])
def test_a_day_nobody_forecasts_is_refused(text: str) -> None:
    with pytest.raises(InvalidArguments, match="only from 2026-11-21 to 2026-11-27"):
        read_day(text, SATURDAY)


@each_case("text", ["soon", "11-24", "周八", "2026-13-01"])
def test_what_is_no_day_is_refused(text: str) -> None:
    with pytest.raises(InvalidArguments, match="is no day"):
        read_day(text, SATURDAY)
