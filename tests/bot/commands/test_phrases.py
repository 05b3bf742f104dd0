from __future__ import annotations

import time

from bot.commands.phrases import at_time

NOON = time.mktime((2026, 3, 2, 12, 0, 0, 0, 0, -1))


def test_a_time_of_another_day_is_told_with_that_day() -> None:
    assert at_time(NOON + 5400, NOON) == "13:30"
    assert at_time(NOON + 86_400, NOON) == "03-03 12:00"
