from __future__ import annotations

import pytest

from bot.policy.circling import is_given_again, is_same, weight, without_circles

LONG = "可以试试楼下新开的那家火锅店。"


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("先洗手再吃饭，" * 4, "先洗手再吃饭，" * 4),
        ("先洗手再吃饭，" * 5, "先洗手再吃饭"),
        ("好，" + "先洗手再吃饭，" * 9 + "先洗", "好，先洗手再吃饭"),
        ("先洗手，再吃饭，" * 2 + "最后睡觉。", "先洗手，再吃饭，" * 2 + "最后睡觉。"),
        ("先洗手，再吃饭，" * 3, "先洗手，再吃饭"),
        ("先洗手，再吃饭，" * 9 + "完了没有？", "先洗手，再吃饭，" * 9 + "完了没有？"),
        ("一起先洗手，再吃饭，然后睡觉，起床，出门，" * 3, "一起先洗手，再吃饭，然后睡觉，起床，出门"),
        (
            "甲，乙，丙，丁，戊，己，庚，辛，壬，癸，子，丑，寅，" * 3,
            "甲，乙，丙，丁，戊，己，庚，辛，壬，癸，子，丑，寅，" * 3,
        ),
        ("甲，乙，丙，丁，戊，己，庚，辛，壬，癸，子，丑，" * 3, "甲，乙，丙，丁，戊，己，庚，辛，壬，癸，子，丑"),
        ("哈哈哈，" * 30, "哈哈哈，" * 30),
        ("加油加油，" * 10, "加油加油"),
        ("、".join("甲乙丙丁戊己庚辛壬癸子丑") + "，", "、".join("甲乙丙丁戊己庚辛壬癸子丑") + "，"),
        ("I did half of it. " * 8, ("I did half of it. " * 8)),
        ("I did half of it, " * 8, "I did half of it"),
    ],
)
def test_clauses_that_come_again_until_it_ends_are_said_once(text: str, left: str) -> None:
    assert without_circles(text, "怎么办？") == left


def test_a_long_sentence_is_said_once_and_a_short_one_as_often_as_it_is() -> None:
    again = "明天上午九点在东门集合一起出发。记得带水。"
    assert without_circles(again * 2, "") == "明天上午九点在东门集合一起出发。记得带水。记得带水。"
    code = "print(all_of_the_things_that_there_are)\n" * 2
    assert without_circles(code, "") is code


@pytest.mark.parametrize("asked", ["说五遍", "再说3次", "写首诗", "sing it", "say it three times", "重复一下"])
def test_who_asks_for_it_again_gets_it(asked: str) -> None:
    text = "先洗手再吃饭，" * 9
    assert without_circles(text, asked) is text


def test_a_chinese_character_says_as_much_as_three_letters() -> None:
    assert weight("abc") == 3
    assert weight("爬山a") == 7


def test_the_same_answer_is_the_same_but_for_marks() -> None:
    assert is_same("好的。", "好的！")
    assert not is_same("好的", "好")
    assert not is_same("三点", "四点")
    assert not is_same("好" + "！" * 9, "好")


@pytest.mark.parametrize(
    ("text", "asked", "given", "is_again"),
    [
        (LONG, "一周有几个工作日？", ["晚上吃点啥？"], True),
        (LONG, "哪家火锅好？", ["晚上吃点啥？"], False),
        (LONG, "明天晚上呢？", ["晚上吃点啥？"], False),
        (LONG, "去哪？", ["晚上吃点啥？"], False),
        (LONG, "去哪里呢？", ["晚上吃点啥？"], True),
        (LONG, "在哪里？", ["晚上吃点啥？"], False),
        (LONG, "我们什么时候放假？", ["我们晚上吃点啥？"], True),
        (LONG, "再说一遍吧你", ["晚上吃点啥？"], False),
        (LONG, "一周有几个工作日？", [], False),
        ("抱歉，这个我没法帮你做到。", "一周有几个工作日？", ["晚上吃点啥？"], False),
        ("不能吃这么多东西的呀。", "一周有几个工作日？", ["晚上吃点啥？"], False),
        ("火锅店", "一周有几个工作日？", ["晚上吃点啥？"], False),
        ("去火锅店", "一周有几个工作日？", ["晚上吃点啥？"], True),
        ("The capital of France is Paris.", "how many players are there?", ["what is the capital of France?"], True),
        ("The capital of France is Paris.", "and its capital, again?", ["what is the capital of France?"], False),
        ("The capital of France is Paris.", "what about France?", ["and?"], False),
    ],
)
def test_a_members_line_is_given_again_where_it_has_nothing_to_do_with_the_question(
    text: str, asked: str, given: list[str], is_again: bool
) -> None:
    assert (bool(given) and is_given_again(text, asked, given)) is is_again
