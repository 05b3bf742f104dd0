"""A line in both languages, and what becomes of its values."""

from __future__ import annotations

import pytest

from bot.core.language import Language, Phrase


def test_a_line_has_both_languages_and_the_same_named_values_in_each() -> None:
    line = Phrase("{count:.0f} 个，见 {file}", "{file}: {count}")  # in any order, each in its own form
    assert line.format(Language.ENGLISH, count=2, file="a") == "a: 2"
    for zh, en in (("", "none"), ("无", ""), ("{a}", "{b}"), ("{a}", "a"), ("{}", "{}"), ("{0}", "{0}")):
        with pytest.raises(ValueError, match=r"missing|differ|no name"):
            Phrase(zh, en)


def test_values_are_put_into_the_line_of_the_language_that_is_read() -> None:
    line = Phrase("{who} 用了 {percent:.0f}%", "{who} used {percent:.0f} %")
    assert line.format(Language.ENGLISH, who="x", percent=12.3) == "x used 12 %"
    assert line.format(Language.CHINESE, who=Phrase("群", "the group"), percent=1) == "群 用了 1%"
    filled = line.fill(who=Phrase("群 {group}", "group {group}").fill(group="{7}"), percent=80)
    assert (filled, filled.zh) == ("group {7} used 80 %", "群 {7} 用了 80%")
