from __future__ import annotations

import re
from pathlib import Path

from adapters.console.speech import LANGUAGES, Speech, speech

CONSOLE = Path(__file__).parents[3] / "adapters/console"
SPOKEN = re.compile(r"\bt\('([a-z_.]+)'[,)]|\b(?:trouble|speech)[=(]\"([a-z_.]+)\"")


def test_both_languages_have_the_same_words_with_the_same_values_in_them() -> None:
    chinese, english = (speech(language)._words for language in LANGUAGES)
    assert list(chinese) == list(english)
    for key, words in chinese.items():
        assert sorted(re.findall(r"\{\w+", words)) == sorted(re.findall(r"\{\w+", english[key])), key


def test_every_key_that_a_page_names_is_there() -> None:
    files = [*CONSOLE.glob("templates/*.html"), *CONSOLE.glob("*.py")]
    named = {key for file in files for found in SPOKEN.findall(file.read_text("utf-8")) for key in found if key}
    assert len(named) > 15
    assert not [key for key in named if not speech("en").has(key)]


def test_values_are_put_into_words() -> None:
    assert Speech("en", {"a": "{n} of {all}"})("a", n=1, all=2) == "1 of 2"
