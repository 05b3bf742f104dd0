from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.policy.repetition import already_said, bare


@pytest.mark.parametrize(
    "text", ["北京今天晴，25 度。", "北京今天晴 25度！", "北京今天晴,25度", "北京今天晴，２５度", "今天晴"]
)
def test_what_was_said_already_is_recognised_whatever_its_marks(text: str) -> None:
    assert already_said(text, ["稍等一下", "北京今天晴，25度！"])


def test_case_and_blanks_do_not_make_it_new() -> None:
    assert already_said("hello  WORLD", ["Hello, world!"])


def test_several_messages_said_again_in_one_are_not_new() -> None:
    assert already_said("第一句。\n\n第二句。", ["第一句。", "第二句。"])
    assert not already_said("第二句。\n\n第一句。", ["第一句。", "第二句。"])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("北京今天晴，25度，记得带伞。", ["北京今天晴，25度！"]),
        ("更正：今天26度", ["今天25度"]),
        ("好", []),
        ("2026", ["好的，我去查一下 2026 年的数据，请稍等。"]),
        ("2", ["1+1 等于几？让我算 2 秒钟。"]),
        ("No.", ["I do not know yet, let me look it up."]),
        ("晴", ["正在查询北京的天气：是晴天还是雨天呢，稍等。"]),
    ],
)
def test_what_is_new_is_said(text: str, said: list[str]) -> None:
    assert not already_said(text, said)


@pytest.mark.parametrize("text", ["👍", "😊", "？", "……", "❤️", "(＾▽＾)"])
def test_an_answer_of_marks_or_emoji_is_an_answer(text: str) -> None:
    assert not already_said(text, [])
    assert not already_said(text, ["在查了"])
    assert already_said(text, ["在查了", f"好 {text}"])


@pytest.mark.parametrize("said", [[], ["hi"], [""]])
@pytest.mark.parametrize("text", ["", " \n\t　"])
def test_nothing_is_never_new(text: str, said: list[str]) -> None:
    assert already_said(text, said)


@given(st.text(), st.lists(st.text(), max_size=3))
def test_whatever_was_said_is_not_new(text: str, before: list[str]) -> None:
    assert already_said(text, [*before, text])


@given(st.text().filter(lambda text: text.strip()))
def test_where_nothing_was_said_every_word_is_new(text: str) -> None:
    assert not already_said(text, [])
    assert not already_said(text, ["", " "])


@given(st.text())
def test_only_letters_and_digits_are_heard(text: str) -> None:
    assert all(char.isalnum() for char in bare(text))
