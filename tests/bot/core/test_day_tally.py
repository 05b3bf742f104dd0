"""Counts of a day, over midnight."""

from __future__ import annotations

from bot.core.calendar_days import midnight
from bot.core.day_tally import DayTally, Tally
from bot.core.language import Bilingual, Language, text_in
from frostagent.types.errors import ToolFailed
from tests.fakes import ManualClock


def test_counts_begin_anew_at_midnight_and_the_last_failure_stays() -> None:
    clock = ManualClock()
    tally = DayTally(clock)
    assert tally.read() == Tally()
    tally.count()
    tally.count()
    tally.count(reused=True)
    tally.fail(ToolFailed(Bilingual("gone", "没了")))
    failed_at = clock.now()
    assert tally.read() == Tally(2, 1, "gone", failed_at)
    assert text_in(Language.CHINESE, tally.read().error) == "没了"
    clock.time = midnight(clock.now(), later=1) - 1
    assert tally.read().done == 2
    clock.time += 1
    assert tally.read() == Tally(0, 0, "gone", failed_at)
    tally.count()
    assert tally.read().done == 1
