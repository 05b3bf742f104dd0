"""Lines in both languages, and the one in somebody's language."""

from __future__ import annotations

from copy import copy

from bot.core.language import MORE_PEOPLE, Bilingual, Language, Phrase, bilingual, join_lines, text_in, text_of
from tests.owners import both


def test_a_text_in_both_languages_is_read_in_one() -> None:
    line = Bilingual("fine", "好")
    assert [text_in(language, line) for language in Language] == ["好", "fine"]
    assert [text_in(language, "fine") for language in Language] == ["fine", "fine"]
    assert both(line.each(str.upper)) == ("好", "FINE")
    assert both(copy(line)) == both(line)


def test_a_text_of_one_language_is_the_same_in_both() -> None:
    assert both(bilingual("a {b}")) == ("a {b}", "a {b}")
    assert both(bilingual(Phrase("好", "fine"))) == ("好", "fine")


def test_an_error_says_what_it_was_raised_with() -> None:
    both = Bilingual("no host", "没有域名")
    assert [text_of(error).zh for error in (ValueError(both), ValueError("no {host}"), ValueError(), KeyError(1))] == [
        "没有域名",
        "no {host}",
        "",
        "1",
    ]


def test_of_a_long_list_the_first_are_named_and_the_others_counted() -> None:
    three = [Bilingual("A", "甲"), Bilingual("B", "乙"), Bilingual("C", "丙")]
    assert both(join_lines(three, most=3)) == ("甲、乙、丙", "A, B, C")
    assert both(join_lines(three, most=1)) == ("甲，还有 2 个", "A, and 2 more")
    assert both(join_lines(three, most=2, more=MORE_PEOPLE)) == ("甲、乙，还有 1 位", "A, B, and 1 more")
