from __future__ import annotations

import pytest

from bot.prompt.stand_ins import without_stand_in


@pytest.mark.parametrize(
    "answer",
    [
        "(已回答)",
        "（未回答）",
        "(回复)",
        "[已回复]。",
        "【没有内容】",
        " ( 你的回答 ) ",
        "(已写)",
        "（不需要回复）",
        "@小明#1",
        "(friends#2)",
        "（小明#1）",
        "@小明#1 @小红#2！",
        "@老朋友",
    ],
)
def test_what_stands_in_place_of_an_answer_is_none(answer: str) -> None:
    assert without_stand_in(answer, "怎么做？") == ""


@pytest.mark.parametrize(
    ("answer", "left"),
    [
        ("(已回答) 三点", "三点"),
        ("（未回复）\n三点", "三点"),
        ("[回答] 三点", "三点"),
        ("(回复) 三点", "三点"),
        ("【Answer】: three", "three"),
    ],
)
def test_in_front_of_an_answer_it_goes(answer: str, left: str) -> None:
    assert without_stand_in(answer, "怎么做？") == left


@pytest.mark.parametrize("answer", ["（已删除）", "(10)", "（1）", "(现在)", "[好的]。", "（ 正在输入 ）"])
def test_who_has_read_one_of_ours_makes_up_others(answer: str) -> None:
    """As a model of 0.5 B does, for ever."""
    assert without_stand_in(answer, "怎么做？", has_read=True) == ""
    assert without_stand_in(answer, "怎么做？") is answer


@pytest.mark.parametrize(
    "answer",
    ["（笑）", "(摊手)", "（沉默）", "（点点头）", "(三点)", "[狗头]", "（我觉得这样做不太好吧）", "(TBD)", "（好）的"],
)
def test_what_people_do_in_brackets_stays_though_it_has_read_one(answer: str) -> None:
    assert without_stand_in(answer, "怎么做？", has_read=True) is answer


@pytest.mark.parametrize(
    "answer",
    [
        "（笑）",
        "(摊手)",
        "（沉默）",
        "[微笑]",
        "(三点)",
        "已回答",
        "（已回答）一\n（未回答）二",
        "[问题] 几点？\n[回答] 三点",
        "（回答）写左边",
        "@小明#1 来",
        "@",
    ],
)
def test_brackets_and_mentions_of_ones_own_stay(answer: str) -> None:
    assert without_stand_in(answer, "怎么做？") is answer


def test_a_number_in_brackets_is_an_answer_to_who_asks_for_one() -> None:
    for asked in ("选哪个？", "订了几间房", "which one?", "3+4"):
        assert without_stand_in("(3)", asked, has_read=True) == "(3)"
    assert without_stand_in("(3456)", "怎么做？", has_read=True) == "(3456)"


@pytest.mark.parametrize("asked", ["谁会？", "叫一下小明", "提醒他", "who knows?", "ping Tom"])
def test_who_wants_somebody_called_gets_a_mention_alone(asked: str) -> None:
    assert without_stand_in("@小明#1", asked) == "@小明#1"
