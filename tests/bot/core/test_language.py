"""Of a pair of lines, the one in somebody's language."""

from __future__ import annotations

from bot.core.language import join_pairs
from frostagent.text.language import Bilingual, Language, bilingual, fill_pair, text_of


def test_a_pair_is_chinese_and_english() -> None:
    pair = ("好", "fine")
    assert [pair[tongue] for tongue in Language] == ["好", "fine"]
    assert [tongue.either(*pair) for tongue in (Language.CHINESE, Language.ENGLISH)] == ["好", "fine"]


def test_values_go_into_both_lines_and_each_takes_its_own_of_a_pair() -> None:
    assert fill_pair(("{a} 是 {b}", "{a} is {b}"), a=1, b=("好", "fine")) == ("1 是 好", "1 is fine")


def test_a_bilingual_value_is_in_the_language_of_its_line() -> None:
    line = fill_pair(("说：{a}", "says: {a}"), a=Bilingual("fine", "好"))
    assert line == ("说：好", "says: fine")
    assert (bilingual(line), bilingual(line).zh) == ("says: fine", "说：好")
    assert bilingual("a {b}").zh == "a {b}"


def test_an_error_says_what_it_was_raised_with() -> None:
    both = Bilingual("no host", "没有域名")
    assert [text_of(error).zh for error in (ValueError(both), ValueError("no {host}"), ValueError(), KeyError(1))] == [
        "没有域名",
        "no {host}",
        "",
        "1",
    ]


def test_of_a_long_list_the_first_are_named_and_the_others_counted() -> None:
    three = [("甲", "A"), ("乙", "B"), ("丙", "C")]
    assert join_pairs(three, most=3) == ("甲、乙、丙", "A, B, C")
    assert join_pairs(three, most=1) == ("甲，还有 2 个", "A, and 2 more")
    assert join_pairs(three, most=2, measure="位") == ("甲、乙，还有 1 位", "A, B, and 1 more")
