"""An owner hears of a limit once at each mark, where it was reached; of people together."""

from __future__ import annotations

from bot.budget.limit_alerts import LimitAlerts
from bot.budget.limits import Amount
from bot.core.calendar_days import midnight
from bot.core.language import Language
from tests.fakes import GROUP, ManualClock
from tests.owners import both, read


def test_each_mark_is_told_once_a_day_unless_it_was_told_elsewhere() -> None:
    told: list[str] = []
    alerts, amount = LimitAlerts(read(told), now=ManualClock().now), Amount(45_678, 0.0123)
    for share in (0.79, 0.8, 0.9, 1.1, 1.2):
        alerts.record("all", share, amount)
    assert [line.partition(" is ")[0] for line in told] == [
        "All conversations: 80 % of what may be spent today",
        "All conversations: 110 % of what may be spent today",
    ]
    assert told[1].endswith("($0.0123, 45678 token). Nobody there is answered until midnight.")
    alerts.clear()
    alerts.acknowledge({"all": 0.85})
    alerts.record("all", 0.9, amount)
    assert len(told) == 2
    alerts.record("all", 1.0, amount)
    assert len(told) == 3


def test_a_group_is_named() -> None:
    told: list[str] = []
    LimitAlerts(read(told, Language.CHINESE), now=ManualClock().now).record(GROUP, 0.8, Amount(1))
    assert told == ["群 4242 今天的额度用了 80%（$0.0000, 1 token）：用满就不再回答，到零点重新算起。"]


def test_people_are_told_together_each_at_both_marks_and_owners_of_none_of_their_own() -> None:
    told, clock = list[str](), ManualClock()
    alerts = LimitAlerts(read(told), owners={999}, now=clock.now)
    assert alerts.take_people() is None
    for who, share in ((777, 0.79), (778, 0.8), (779, 0.85), (778, 0.9), (779, 1.1), (999, 1.0)):
        alerts.record(who, share, Amount(1))
    assert both(alerts.take_people() or "") == (
        "个人一天的额度快用完或已用完的：778（80%）、779（110%）。用完的人到零点前不再得到回答。",
        (
            "These people have used most of what each may take in a day: 778 (80 %), 779 (110 %). Who has used all "
            "of it is not answered until midnight."
        ),
    )
    assert alerts.take_people() is None
    alerts.record(779, 1.2, Amount(1))
    alerts.record(778, 1.0, Amount(1))
    clock.time = midnight(clock.time, later=1)  # that they had reached it is told all the same, of the day before
    alerts.clear()
    alerts.record(780, 0.8, Amount(1))
    assert both(alerts.take_people() or "") == (
        "昨天个人一天的额度快用完或已用完的：778（100%）。",
        "Yesterday these people used most of what each may take in a day: 778 (100 %).",
    )
    assert both(alerts.take_people() or "")[0].startswith("个人一天的额度快用完或已用完的：780（80%）。")
    assert alerts.take_people() is None
    alerts.acknowledge({777: 0.9})
    alerts.record(777, 0.95, Amount(1))
    assert alerts.take_people() is None
    assert told == []


def test_of_a_limit_that_is_not_all_used_it_is_never_said_that_it_is() -> None:
    told: list[str] = []
    alerts = LimitAlerts(read(told, Language.CHINESE), now=ManualClock().now)
    for key in (GROUP, 777):
        alerts.record(key, 0.9996, Amount(1))
    assert told == ["群 4242 今天的额度用了 99%（$0.0000, 1 token）：用满就不再回答，到零点重新算起。"]
    assert "：777（99%）。" in both(alerts.take_people() or "")[0]


def test_of_very_many_people_some_are_named_and_the_others_counted() -> None:
    alerts = LimitAlerts(lambda _: None, now=ManualClock().now)
    for who in range(1, 13):
        alerts.record(who, 1.0, Amount(1))
    zh, en = both(alerts.take_people() or "")
    assert "、10（100%），还有 2 位。" in zh
    assert ", 10 (100 %), and 2 more. " in en
