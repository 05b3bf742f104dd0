from __future__ import annotations

from datetime import timedelta, timezone

from msgspec.structs import replace

from tests.bot.prompt import ENGLISH, VIEW

MIDNIGHT = 1_795_392_000.0 - 60  # 2026-11-22 23:59 UTC


def test_a_moment_is_told_as_the_clock_on_the_wall_has_it() -> None:
    assert (VIEW.clock(MIDNIGHT), VIEW.day(MIDNIGHT)) == ("23:59", "2026-11-22")
    assert VIEW.date(MIDNIGHT) == "2026-11-22 星期日"
    assert ENGLISH.date(MIDNIGHT) == "2026-11-22 Sunday"
    beijing = replace(VIEW, zone=timezone(timedelta(hours=8)))
    assert (beijing.clock(MIDNIGHT), beijing.date(MIDNIGHT)) == ("07:59", "2026-11-23 星期一")


def test_what_is_no_moment_is_empty() -> None:
    for time in (0.0, -1.0, 1e18, float("nan"), float("inf")):
        assert (VIEW.clock(time), VIEW.day(time), VIEW.date(time)) == ("", "", "")
