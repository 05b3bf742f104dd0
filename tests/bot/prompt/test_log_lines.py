from __future__ import annotations

import pytest

from bot.domain.chat import UserMessage
from bot.prompt.log_lines import without_log
from bot.prompt.people import People

PEOPLE = People.of(
    [
        UserMessage(
            "[群聊记录]\n小明#1: 周六爬山去吗\nAnn#2: 我去\n小红#3: [引用 小明#1 的「周六爬山去吗」] 要加班\n"
            "[提问]\n小明#1: 怎么做？"
        )
    ]
)


def left(text: str, asked: str = "怎么做？") -> str:
    return without_log(text, PEOPLE, question=asked, asked=asked)


@pytest.mark.parametrize(
    "log",
    [
        "小红: 要加班",
        "ann：我去",
        "小明: 周六爬山去吗\n小红: 编的",
        "小明: 周六爬山去吗；Ann: 我去。小红: 要加班",
        "小红#3: 要加班",
        "小红: [引用 小明 的「周六爬山去吗」] 要加班",
        "(小红: 随便什么)",
        "- Ann: 我去\n- 小红: 要加班",
        "(2) 小红: 要加班\n\n3. Ann: 我去",
        "3#3: 要加班",
        "周六爬山去吗, Ann: 我去",
        "你#1: 怎么做？\n4#2: 好",
        "【小红：随便什么】",
        "小明: 怎么做？\nAnn: 随便什么",
        "周六爬山去吗\n\n我去\n要加班",
    ],
)
def test_lines_of_the_log_are_no_answer(log: str) -> None:
    assert left(log) == ""


@pytest.mark.parametrize(
    "honest",
    [
        "小红: 不来",
        "小明: 周六爬山去吗\n小红: 编的\nAnn: 编的",
        "老李: 要加班",
        "要加班",
        "周六爬山去吗\n我去",
        "周六爬山去吗\n我去\n还有别的",
        "我去\n要加班\n我去",
        "投票结果如下：\nAnn: 我去\n小红: 要加班",
        "Ann: 我去\n就这些",
        "时间: 周六，Ann: 我去",
        "1. 先放油\n2. 再放盐\n3. 出锅",
        "Issue#9: 要加班",
        "小明: 怎么",
        "我不清楚，Ann: 我去",
        "Ann: 我去，你问问老李: 他知道",
    ],
)
def test_what_looks_like_it_is_an_answer(honest: str) -> None:
    assert left(honest) is honest


@pytest.mark.parametrize("asked", ["谁去？", "大家怎么说", "小红来吗？", "what did they say", "ANN呢", "写段对话"])
def test_who_asks_what_was_said_or_about_one_of_them_is_told(asked: str) -> None:
    assert left("Ann: 我去\n小红: 要加班", asked) == "Ann: 我去\n小红: 要加班"


def test_who_asks_what_was_said_is_told_without_names_too() -> None:
    assert left("周六爬山去吗\n我去\n要加班", "大家怎么说") == "周六爬山去吗\n我去\n要加班"
    assert left("(2) 小红: 要加班", "我说的那家要多少钱？") == ""
    assert left("小红: 要加班", "你说了什么？") == "小红: 要加班"


def test_what_stands_beside_the_log_stays() -> None:
    assert left("小明: 怎么做？\n先放油。") == "先放油。"
    assert left("先放油。\n\nAnn: 我去\n小红: 要加班") == "先放油。"
    assert left("(Ann: 我去)\n先放油。", "谁去？") == "先放油。"
