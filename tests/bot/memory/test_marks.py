"""An owner hears of a limit once at each mark, where it was reached; of a person's he never does."""

from __future__ import annotations

from bot.domain.tongue import Tongue
from bot.memory.marks import Marks
from bot.policy.limits import Amount
from tests.fakes import GROUP
from tests.owners import read


def test_each_mark_is_told_once_a_day_unless_it_was_told_elsewhere() -> None:
    told: list[str] = []
    marks, amount = Marks(read(told)), Amount(45_678, 0.0123)
    for share in (0.79, 0.8, 0.9, 1.1, 1.2):
        marks.reach("all", share, amount)
    assert [line.partition(" is ")[0] for line in told] == [
        "All conversations: 80 % of what may be spent today",
        "All conversations: 110 % of what may be spent today",
    ]
    assert told[1].endswith("($0.0123, 45678 token). Nobody there is answered until midnight.")
    marks.clear()
    marks.know({"all": 0.85})
    marks.reach("all", 0.9, amount)
    assert len(told) == 2
    marks.reach("all", 1.0, amount)
    assert len(told) == 3


def test_a_group_is_named_and_a_person_hears_it_himself() -> None:
    told: list[str] = []
    marks = Marks(read(told, Tongue.CHINESE))
    marks.reach(777, 1.0, Amount(1))
    marks.reach(GROUP, 0.8, Amount(1))
    assert told == ["群 4242 今天的额度用了 80%（$0.0000, 1 token）：用满就不再回答，到零点重新算起。"]
