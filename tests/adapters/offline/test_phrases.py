"""Every phrase in both languages."""

from __future__ import annotations

import re
import string

from adapters.offline import phrases
from adapters.offline.phrases import Phrase
from tests.cases import each_case

ALL = {name: value for name, value in vars(phrases).items() if isinstance(value, Phrase)}


def fields(template: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(template) if name}


@each_case("name", ALL)
def test_both_languages_tell_the_same(name: str) -> None:
    phrase = ALL[name]
    assert fields(phrase.zh) == fields(phrase.en)
    assert not re.search(r"[\u3400-\u9fff]", phrase.en)


def test_what_a_tool_says_is_passed_on_as_it_is() -> None:
    assert phrases.FOUND.say("en", text="{braces} stay") == "Here is what I found: {braces} stay"
    assert phrases.FOUND.say("zh", text="晴") == "查到了：晴"


def test_every_kind_of_failure_has_a_reason() -> None:
    assert phrases.reason("TOOL_TIMEOUT", "zh") == "等了太久没有回应"
    assert phrases.reason("TOOL_EXECUTION_FAILED", "en") == phrases.reason("", "en")
