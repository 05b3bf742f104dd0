from __future__ import annotations

import pytest

from config.values import Wrong, hours, time_of_day, zone
from tests.cases import each_case


@each_case("text", ["23:30", "25:00-1:00", "24:30-1:00", "8:00-8:00", "0:00-24:00", "8-9", "nights"])
def test_what_is_no_part_of_a_day_is_named(text: str) -> None:
    with pytest.raises(Wrong, match="23:30-07:30"):
        hours(text)


def test_a_day_ends_where_the_next_one_begins() -> None:
    assert hours("23:00-24:00") == hours("23:00 - 0:00") == ((1380, 0),)
    assert hours("") == ()


def test_a_time_of_day_is_in_seconds_after_midnight_and_0_is_never() -> None:
    assert [time_of_day(text) for text in ("09:00", "8:30", "23：59", " 00:00 ")] == [32400.0, 30600.0, 86340.0, 0.0]
    assert [time_of_day(never) for never in ("0", "Off", None)] == [None] * 3
    assert time_of_day(32400.0) == 32400.0
    for wrong in ("24:00", "9", "nine", "09:60", "09:00:00", True):
        with pytest.raises(Wrong):
            time_of_day(wrong)


def test_a_time_zone_is_a_name_a_rule_or_a_file_and_nothing_else_is_taken_for_utc_in_silence() -> None:
    for text in ("", "UTC", "Asia/Shanghai", ":Asia/Shanghai", "CST-8", "<+08>-8", f":{__file__}"):
        assert zone(text) == text
    for wrong in ("Asia/Shangai", "Asia", "CST", "-7?x", "../x", "+8", "pyproject.toml"):
        with pytest.raises(Wrong, match="Asia/Shanghai"):
            zone(wrong)
