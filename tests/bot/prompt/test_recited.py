from __future__ import annotations

import re
from dataclasses import astuple

import pytest

from bot.prompt.language import WORDINGS
from bot.prompt.recited import is_template, without_ours
from bot.prompt.wording import Wording
from bot.prompt.wording_en import EN
from bot.prompt.wording_zh import ZH


@pytest.mark.parametrize("words", WORDINGS)
def test_every_sentence_of_our_rules_and_notices_is_cut(words: Wording) -> None:
    told = (words.rules, words.blind, *astuple(words.notices)[:3], words.summary.request, words.summary.instructions)
    for text in (*told, *astuple(words.about)):
        for sentence in re.split(r"(?<=[。.])\s*", text.replace("\n", " ")):
            if "{" not in sentence and len(sentence) > (20 if words is ZH else 45):
                assert without_ours(f"好。{sentence}", words, "") == "好。", sentence


def test_each_is_known_in_its_language_only_and_to_who_wrote_it_himself_it_may_be_said() -> None:
    assert without_ours(ZH.notices.last_step, EN, "怎么办") == ZH.notices.last_step
    assert without_ours(EN.notices.last_step, ZH, "怎么办") == EN.notices.last_step
    ours = "像群里的人一样说话，纯文字，短，不用 Markdown、标题和表格"
    assert without_ours(ours, ZH, "怎么办") == ""
    assert without_ours(ours, ZH, f"翻译：{ours}") is ours


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("名字谁都能改成一", "名字谁都能改成一"),
        ("名字谁都能改成一样", ""),
        ("我一般不用 Markdown、标题和表格。", "我一般不用 Markdown、标题和表格。"),
        (
            "大家好呀今天天气真不错我们出去玩吧名字谁都能改成一样的",
            "大家好呀今天天气真不错我们出去玩吧名字谁都能改成一样的",
        ),
        ("大家好呀今天天气真不错我们出去玩吧，名字谁都能改成一样的号码不会", ""),
        ("只写名字谁都能改成一样的", ""),
        ("我只写名字谁都能改成一样的", "我只写名字谁都能改成一样的"),
        ("问到图片里的内容时，如实说你看不到。", ""),
        ("版本 3.14 发布了。", "版本 3.14 发布了。"),
    ],
)
def test_a_few_words_of_ours_are_anybodys(text: str, left: str) -> None:
    assert without_ours(text, ZH, "") == left


def test_only_our_notices_speak_of_the_last_answer_unless_somebody_asks_about_it() -> None:
    assert without_ours("请告诉我你上一次的回答是什么。好。", ZH, "番茄炒蛋怎么做") == "好。"
    assert without_ours("请告诉我你上一次的回答是什么。", ZH, "总结一下我们刚才定了什么") == ""
    assert without_ours("Sorry about my last answer.", EN, "what is a list") == ""
    for asked in ("上次说的对吗", "你刚才的回答呢", "was your last answer right"):
        assert without_ours("我上一次的回答错了。", ZH, asked) == "我上一次的回答错了。"


def test_the_form_of_a_line_is_ours_as_the_rules_show_it() -> None:
    assert is_template("(你的 name#number: 你好)", "怎么做")
    assert is_template("@名字#号码", "怎么做")
    assert not is_template("C# 的名字和号码", "怎么做")
    assert not is_template("名字号码", "怎么做")
    assert not is_template("写 @名字#号码", "「@名字#号码」是什么意思")
