from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.policy.repetition import NEAR, already_said, bare


@pytest.mark.parametrize("text", ["北京今天晴，25 度。", "北京今天晴 25度！", "北京今天晴,25度", "北京今天晴，２５度"])
def test_what_was_said_already_is_recognised_whatever_its_marks(text: str) -> None:
    assert already_said(text, ["稍等一下", "北京今天晴，25度！"])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("今天北京天气是晴，气温25度，适合出门走走", "今天北京的天气是晴，气温25度，适合出门走走"),
        ("今天北京的天气是晴，气温25度，适合出门走走哦", "今天北京的天气是晴，气温25度，适合出门走走"),
        ("The release is 1.21.4, out since Tuesday", "The release is 1.21.4, it is out since Tuesday"),
        ("现在的版本是 6.7.0，可以预下载", "查到了：现在的版本是 6.7.0，可以预下载，祝玩得开心"),
    ],
)
def test_nearly_the_same_or_a_good_part_of_it_is_not_new(text: str, said: str) -> None:
    assert already_said(text, [said])


LETTERS = st.text(st.sampled_from("天地玄黄宇宙洪荒日月盈昃辰宿列张abcdefgh"), min_size=40, max_size=80)


@given(LETTERS, st.data())
def test_below_the_threshold_of_changes_it_is_a_repetition_above_it_is_new(text: str, data: st.DataObject) -> None:
    """Replacing k of n letters by strangers gives a ratio of 100 (n - k) / n."""
    share = data.draw(st.floats(0.0, 0.4).filter(lambda x: abs(x - (1 - NEAR / 100)) > 0.03))
    places = data.draw(st.permutations(range(len(text))))[: round(share * len(text))]
    changed = "".join("Ω" if index in places else char for index, char in enumerate(text))
    ratio = 100 * (len(text) - len(places)) / len(text)
    assert already_said(changed, [text]) == (ratio >= NEAR)


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
        ("北京", ["我查查北京"]),
        ("42", ["Is it 42?"]),
        ("明天北京的气温是26度，记得多穿一点衣服", ["明天北京的气温是25度，记得多穿一点衣服"]),
        ("你明天不可以去那个地方，那里很危险的", ["你明天可以去那个地方，那里很危险的"]),
        ("You cannot open that file with this program", ["You can open that file with this program"]),
        ("R:final:tk00000001x", ["R:tool:tk00000001x"]),
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
