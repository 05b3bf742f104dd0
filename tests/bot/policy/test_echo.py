from __future__ import annotations

import pytest

from bot.policy.already_said import bare
from bot.policy.apologies import OURS
from bot.policy.echo import is_all_of, is_echo, is_greeting, is_said_back


@pytest.mark.parametrize(
    ("question", "answer", "said_back"),
    [
        ("北京明天的天气怎么样？", "北京明天的天气怎么样", True),
        ("北京明天的天气怎么样？", "北京明天的天气怎么样呢？", True),
        ("北京 明天 的 天气，怎么样 ？", "北京明天的天气怎么样", True),
        ("How is the weather in Beijing tomorrow?", "how is the weather in beijing tomorrow", True),
        ("北京明天的天气怎么样？", "北京明天的天气不怎么样，有大雨", False),
        ("你好，北京明天的天气怎么样？", "你好，北京明天的天气怎么样？", True),
        ("请问一下，北京明天白天和晚上的天气怎么样？", "北京明天白天和晚上的天气怎么样？", False),  # 88 % of it
        ("在吗", "在吗", False),
        ("他是不是明天来北京开会", "他是明天来北京开会", False),
        ("周六的聚会改到晚上七点了吗？", "周六的聚会改到晚上七点了", False),
        ("谁是这次比赛的冠军队伍", "他是这次比赛的冠军队伍", False),
        ("#Q0000001", "#Q0000001...............", False),
        ("13800138000", "13800138000", False),
        ("小明明天下午不来学校上课", "小明明天下午来学校上课", False),
        ("珠穆朗玛峰的高度是8848米", "珠穆朗玛峰的高度是8849米", False),
        ("The meeting starts at 3 pm in room 204", "The meeting starts at 4 pm in room 204", False),
        ("格式化 select a, b from t where c", "SELECT a, b\nFROM t\nWHERE c", False),
        ("加标点 今天天气很好我们去公园玩吧", "今天天气很好，我们去公园玩吧。", False),
        ("祝大家新年快乐万事如意", "祝大家新年快乐万事如意！", False),
        ("跟我说：今天的风儿好喧嚣啊", "跟我说：今天的风儿好喧嚣啊", False),
        ("Repeat after me: the sky is blue", "Repeat after me: the sky is blue", False),
        ("念：我爱北京天安门广场", "我爱北京天安门广场", False),
        (
            "发一句: 今晚八点半开会不要迟到，带上电脑和充电器，还有上周的表",
            "今晚八点半开会不要迟到，带上电脑和充电器，还有上周的表。",
            False,
        ),
        ("Print: the quick brown fox jumps over the lazy dog", "The quick brown fox jumps over the lazy dog.", False),
        ("念：我爱北京天安门广场", "念：我爱北京天安门广场", True),
        ("问题：北京明天白天和晚上的天气怎么样？", "北京明天白天和晚上的天气怎么样？", True),
        ("python 怎么读环境变量", "python 怎么读环境变量。", True),  # asks how to read, not to read it out
        ("怎么翻译「今天天气很好」这句话", "今天天气很好，怎么翻译这句话", False),
        ("see you later!", "See you later!", False),
        ("Goodbye, see you all tomorrow!", "Goodbye, see you all tomorrow!", False),
        ("", "", False),
    ],
)
def test_a_question_said_back_is_no_answer_unless_it_is_a_greeting_or_asked_for(
    question: str, answer: str, said_back: bool
) -> None:
    assert is_echo(answer, question) is said_back


@pytest.mark.parametrize(
    ("text", "greets"),
    [
        *(("晚安啦", True), ("好的，谢谢你", True), ("see you later all", True), ("good night!", True)),
        *(
            ("what do you think?", False),
            ("你好，明天几点集合", False),
            ("see the new year plan", False),
            ("几点？", False),
            ("", False),
        ),
    ],
)
def test_a_greeting_says_hardly_anything_else(text: str, greets: bool) -> None:
    assert is_greeting(text) is greets


def test_a_part_of_what_we_told_it_is_said_back_and_few_letters_are_not() -> None:
    told = "until: '2026 Monday' is no time; write 14:02, 2026-11-22 14:02 or 2026-11-22"
    notices = (bare("Answer now, in words."), bare(told))
    assert is_said_back("14:02, 2026-11-22 14:02 or 2026-11-22.", notices)
    assert not is_said_back("14:02", notices)
    assert not is_said_back("at 14:02, 2026-11-22, I think", notices)
    ours = tuple(map(bare, OURS))
    assert not any(is_said_back(word, ours) for word in ("Delivered.", "I was restarted.", "请稍后再试。"))
    assert is_said_back("My last answer could not be delivered.", ours)
    assert is_said_back("这次没能回答上来", ours)
    assert is_said_back(f"error: {told} [TOOL_INVALID_ARGUMENTS]", ())
    assert not is_said_back("error: unexpected token [1, 2]", ())


@pytest.mark.parametrize(
    ("answer", "is_all"),
    [
        ("[2026-11-22 Sunday, group 「Friends」, a member is asking]", True),
        ("2026-11-22 Sunday, group Friends, a member is asking.", True),
        ("2026-11-22 Sunday", False),
        ("Today is 2026-11-22, a Sunday.", False),
        ("This is the group Friends, and you are a member of it.", False),
        ("", False),
    ],
)
def test_all_that_was_told_of_the_moment_is_no_answer_and_a_part_of_it_is_one(answer: str, is_all: bool) -> None:
    assert is_all_of(answer, "2026-11-22 Sunday, group 「Friends」, a member is asking") is is_all


def test_where_nothing_was_told_of_the_moment_every_answer_is_one() -> None:
    assert not is_all_of("fine", "")
    assert not is_all_of("11:20", "11:20")  # too short to be more than chance
