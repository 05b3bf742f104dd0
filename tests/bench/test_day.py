"""An evening of a large group with a limit, in small; `python -m tests.bench.day` lives a whole day of 2,000 people."""

from __future__ import annotations

from pathlib import Path

from bot.budget.limits import LimitLevel
from bot.policy.wake import Silence
from tests.bench.crowd import make_crowd
from tests.bench.day import day

THIRD = 0.65  # US dollars; about a third of what this evening takes without a limit
RATE = 6  # questions a minute, and quick answers of one who may be a bot


def test_an_evening_ends_at_its_limit_and_until_then_everybody_has_his_turn(tmp_path: Path) -> None:
    crowd = make_crowd(1, people=200, lines=160, hours=(19, 20), flood=20)
    assert crowd == make_crowd(1, people=200, lines=160, hours=(19, 20), flood=20)
    lived = day(crowd, tmp_path, limit=THIRD)
    assert 0.98 <= lived.bill / THIRD <= 1.02, lived.table()
    assert list(lived.rungs) == [*LimitLevel], lived.table()
    assert all(taken == answered for _, taken, answered in lived.rungs.values()), lived.table()
    assert [turn for turn in lived.turns if turn.rung == LimitLevel.SPENT] == []
    assert lived.passed == 1, lived.table()
    assert 0 < lived.most(lived.spammers, 60) <= RATE
    assert 0 < lived.most(lived.bots, 600) <= RATE
    assert {one.refused for one in lived.questions if one.asker in lived.bots} >= {Silence.LOOP}
