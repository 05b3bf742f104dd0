from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.policy.silence import Silent, keeps_silent, silence_in
from tests.cases import each_case
from tests.data.speech import entries


def test_silence_in_words_is_known_in_every_dress() -> None:
    assert [text for text in entries("silence.txt") if silence_in(text) is None] == []
    assert len(set(entries("silence.txt"))) >= 60


def test_no_honest_answer_is_silence() -> None:
    honest = [*entries("silence_honest.txt"), *entries("honest.txt")]
    assert [text for text in honest if silence_in(text) is not None] == []


def test_after_a_weak_wake_all_of_it_is_silence() -> None:
    said = [text for text in entries("silence.txt") if not keeps_silent(text, text, asked=text, weak=True)]
    assert said == []


def test_reasons_may_stand_before_it_where_nobody_called() -> None:
    for reasons in ("他们在聊游戏。\n（不回复）", "They talk among themselves.\n\n[SILENT]"):
        assert keeps_silent(reasons, asked="", weak=True)
        assert not keeps_silent(reasons, asked="", weak=False)
    for answer in ("下雪了。\n沉默", "好的。\n（笑）", "他最后说：\n不回复"):
        assert not keeps_silent(answer, asked="", weak=True)


def test_to_who_called_none_of_it_is_said_at_once() -> None:
    said = [text for text in entries("silence.txt") if not keeps_silent(text, asked="明天几点开会？", weak=False)]
    assert said == []


@each_case(
    ("text", "asked", "is_answer"),
    [
        ("（不回复）", "明天几点开会？", False),
        ("NO_RESPONSE", "明天几点开会？", False),
        ("[SILENT]", "明天几点开会？", False),
        ("finish()", "明天几点开会？", False),
        ("exit()", "明天几点开会？", False),
        ("（不回复）", "要理他吗", False),
        ("[SILENT]", "如何退出 Python", False),
        ("无需回复", "明天几点开会？", True),
        ("无需理会", "要理他吗", True),
        ("不需要回复。", "邮件要处理吗", True),
        ("Stay silent.", "What should I do in court?", True),
        ("exit()", "如何退出 Python", True),
        ('{"answer": "none"}', "有几个？用 JSON 回答", True),
        ('{"message": "[SILENT]"}', "有几个？用 JSON 回答", False),
        ("*No response*", "when do we meet?", False),
        ("finish()", "Android 里关掉一个 Activity 用哪个方法？", True),
        ("无需回复", "这封邮件要回复吗？", True),
        ("No response.", "did the server answer?", True),
        ("沉默", "《野草》里当我什么着的时候觉得充实？", True),
        ("Silence.", "what do you hear in the snow?", True),
        ("（沉默）", "你来当一个哑巴", True),
        ("NO_RESPONSE", "请只输出 NO_RESPONSE 这几个字母", True),
    ],
)
def test_what_may_be_an_answer_is_one_if_it_is_said_again(text: str, asked: str, is_answer: bool) -> None:
    assert keeps_silent(text, asked=asked, weak=False)
    assert keeps_silent(text, "沉默是金", asked=asked, weak=False)
    assert keeps_silent(text, text, asked=asked, weak=False) is not is_answer


def test_how_sure_it_is() -> None:
    told = {"（不回复）": Silent.CHOSEN, "[silent]": Silent.CHOSEN, "不回复": Silent.MOOD, "*沉默*": Silent.MOOD}
    assert {text: silence_in(text) for text in told} == told


@given(st.text())
def test_any_text_can_be_looked_at(text: str) -> None:
    assert silence_in(f"({text})") in (None, *Silent)
    assert silence_in("{" + text + "}") in (None, *Silent)


@pytest.mark.timeout(10)
def test_a_long_text_holds_nobody_up() -> None:
    for piece in ("不回复，", "(", "*", "{", "action: ", "我就", "no response "):
        assert silence_in(piece * 20_000) is None
        assert silence_in((piece * 240)[:239]) in (None, *Silent)
