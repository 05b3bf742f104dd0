"""Of a pair of lines, the one in somebody's language."""

from __future__ import annotations

from bot.domain.tongue import Tongue, filled


def test_a_pair_is_chinese_and_english() -> None:
    pair = ("好", "fine")
    assert [pair[tongue] for tongue in Tongue] == ["好", "fine"]
    assert [tongue.either(*pair) for tongue in (Tongue.CHINESE, Tongue.ENGLISH)] == ["好", "fine"]


def test_values_go_into_both_lines_and_each_takes_its_own_of_a_pair() -> None:
    assert filled(("{a} 是 {b}", "{a} is {b}"), a=1, b=("好", "fine")) == ("1 是 好", "1 is fine")
