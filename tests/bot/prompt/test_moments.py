from __future__ import annotations

import pytest
from msgspec.structs import replace

from bot.prompt.compose import facts
from bot.prompt.language import WORDINGS
from bot.prompt.moments import is_date_alone, without_moment
from bot.prompt.wording import Wording
from tests.bot.prompt import VIEW
from tests.fakes import said

DO = "怎么做？"


@pytest.mark.parametrize("words", WORDINGS)
@pytest.mark.parametrize("role", ["owner", "admin", "member"])
def test_the_line_as_we_write_it_is_cut_wherever_it_stands(words: Wording, role: str) -> None:
    message = said("hi", at=False)
    message = replace(message, group_name="摸鱼群", sender=replace(message.sender, role=role))
    line = facts(message, replace(VIEW, words=words))
    assert "摸鱼群" in line
    assert without_moment(line, "摸鱼群", DO) == ""
    assert without_moment(f"({line})", "摸鱼群", DO) == ""
    assert without_moment(f"先放油。{line}", "摸鱼群", DO) == "先放油。"
    assert without_moment(f"[{line}] 先放油。", "摸鱼群", DO) == "先放油。"
    assert without_moment(f"{line}\n先放油。", "摸鱼群", DO) == "先放油。"


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("(02-11-24 星期二，摸鱼群)", ""),
        ("11月24日（星期二）、私聊", ""),
        ('Nov is here. 2026/11/24 Tuesday | group "摸鱼群"', "Nov is here."),
        ("我是小霜，群「摸鱼群」，提问者是管理员。", "我是小霜。"),
        ("先放油，提问的是普通成员，再放盐", ""),
        ("提问的是普通成员，先放油", "先放油"),
        ("The group 「摸鱼群」, a member is asking, does not say which.", ""),
        ("A member is asking. Salt.", "Salt."),
        ("群「摸鱼群」里有人知道。2026-11-24 星期二出发。", "摸鱼群里有人知道。2026-11-24 星期二出发。"),
        ("2026-11-24 星期二，摸鱼群去爬山", "2026-11-24 星期二，摸鱼群去爬山"),
        ("11-24 星期二，11-25 星期三", "11-24 星期二，11-25 星期三"),
        ("提问的是普通成员还是群主不重要", "提问的是普通成员还是群主不重要"),
        ("a member is asking about it", "a member is asking about it"),
        ("群「别的群」也有", "群「别的群」也有"),
    ],
)
def test_parts_of_it_side_by_side_are_cut_and_one_of_them_is_anybodys(text: str, left: str) -> None:
    assert without_moment(text, "摸鱼群", DO) == left


def test_who_asks_for_one_of_its_parts_is_told() -> None:
    line = "2026-11-24 星期二，群「摸鱼群」，提问的是普通成员。"
    assert without_moment(line, "摸鱼群", "今天几号？") == "2026-11-24 星期二"
    assert without_moment("提问的是群主", "摸鱼群", "刚才是谁？") == "提问的是群主"
    assert without_moment("这是群「摸鱼群」", "摸鱼群", "这是哪个群") == "这是群「摸鱼群」"
    assert without_moment("2026-11-24 星期二，摸鱼群，聚餐", "摸鱼群", "写个通知") == "2026-11-24 星期二，摸鱼群，聚餐"


def test_without_a_group_there_is_the_private_chat() -> None:
    assert without_moment("2026-11-24 星期二，私聊", "", DO) == ""
    assert without_moment("2026-11-24 Tuesday, private chat", "", DO) == ""


@pytest.mark.parametrize(
    ("text", "asked", "is_alone"),
    [
        ("2026-11-24 星期二", DO, True),
        ("（2026-11-24 星期二）。", "现在几点？", True),
        ("2026-11-24 星期二", "今天几号？", False),
        ("2026-11-24 星期二", "什么时候去？", False),
        ("2026-11-24 星期二去", DO, False),
        ("2026-11-24 Tuesday", "which day?", False),
        ("2026-11-24 星期二", "几年一次？", True),
        ("2026-11-24 星期二", "哪天？", False),
        ("(11:02)", DO, True),
        ("(1001#0002#2026-11-24 星期二, our group, 2026-11-24 星期二)", DO, True),
        ("(2026-11-24 星期二改过)", "哪天改的？", False),
        ("(改过) 2026-11-24 星期二 (又改过)", DO, False),
        ("[11:02-11:05]", DO, True),
        ("11:02", DO, False),
        ("(11:02)", "几点了？", False),
        ("(11:02)", "我不在的时候他们聊了什么？", True),
        ("(11:02)", "什么时候？", False),
        ("(11:02)", "明天集合吗", False),
        ("(11:02)", "", False),
        ("2026-11-24 Tuesday", "which one?", True),
        ("2026-11-24 星期二", "", False),
    ],
)
def test_a_date_alone_is_an_answer_to_who_asks_for_any_time(text: str, asked: str, is_alone: bool) -> None:
    assert is_date_alone(text, asked) is is_alone
