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
        ("【Answer】: three", "three"),
    ],
)
def test_in_front_of_an_answer_it_goes(answer: str, left: str) -> None:
    assert without_stand_in(answer, "怎么做？") == left


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


@pytest.mark.parametrize("asked", ["谁会？", "叫一下小明", "提醒他", "who knows?", "ping Tom"])
def test_who_wants_somebody_called_gets_a_mention_alone(asked: str) -> None:
    assert without_stand_in("@小明#1", asked) == "@小明#1"
