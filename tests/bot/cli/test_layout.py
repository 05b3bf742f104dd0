"""Text on a terminal."""

from __future__ import annotations

from bot.cli.layout import columns, wrap


def test_columns_are_as_wide_as_their_widest() -> None:
    assert columns([("a", "bb", "c"), ("long", "b", "\n")]) == "a     bb  c\nlong  b   \\n"


def test_a_chinese_character_is_two_columns_wide() -> None:
    assert columns([("工具", "x"), ("abc", "y")]) == "工具  x\nabc   y"


def test_lines_break_between_words_and_between_chinese_characters() -> None:
    assert wrap("ab cd ef", 5) == ["ab cd", "ef"]
    assert wrap("列出最近的运行", 6) == ["列出最", "近的运", "行"]
    assert wrap("看 LOG_RUNS 文件", 9) == ["看", "LOG_RUNS", "文件"]


def test_no_line_begins_with_the_end_of_a_sentence() -> None:
    assert wrap("运行，新的（在前）。", 4) == ["运", "行，", "新的", "（在", "前）。"]


def test_what_is_too_long_for_a_line_is_not_cut() -> None:
    assert wrap("a 10001:group:4242 b", 6) == ["a", "10001:group:4242", "b"]
    assert wrap("", 6) == []
