from __future__ import annotations

import time
from datetime import timedelta, timezone

import pytest
from msgspec.structs import replace

from bot.prompt.render import View
from tests.bot.prompt import ENGLISH, VIEW

MIDNIGHT = 1_795_392_000.0 - 60  # 2026-11-22 23:59 UTC


def test_a_moment_is_told_as_the_clock_on_the_wall_has_it() -> None:
    assert (VIEW.clock(MIDNIGHT), VIEW.day(MIDNIGHT)) == ("23:59", "2026-11-22")
    assert VIEW.date(MIDNIGHT) == "2026-11-22 星期日"
    assert ENGLISH.date(MIDNIGHT) == "2026-11-22 Sunday"
    beijing = replace(VIEW, zone=timezone(timedelta(hours=8)))
    assert (beijing.clock(MIDNIGHT), beijing.date(MIDNIGHT)) == ("07:59", "2026-11-23 星期一")


def test_what_is_no_moment_is_empty() -> None:
    for moment in (0.0, -1.0, 1e18, float("nan"), float("inf")):
        assert (VIEW.clock(moment), VIEW.day(moment), VIEW.date(moment)) == ("", "", "")


def test_a_machine_that_is_taken_elsewhere_tells_its_new_time(monkeypatch: pytest.MonkeyPatch) -> None:
    told = []
    with monkeypatch.context() as there:
        for zone in ("CST-8", "CST6"):  # of one name, Shanghai and Chicago
            there.setenv("TZ", zone)
            time.tzset()
            told.append(View().clock(MIDNIGHT))
    time.tzset()
    assert told == ["07:59", "17:59"]
