from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

from adapters.console.access import describe_audit_outcome, describe_object
from adapters.console.language import LANGUAGES, WORDS_FOLDER, Language, language_named, read_words
from bot.core.actions import SentSegment, plain_words
from bot.core.engine_words import REQUIRES
from bot.core.journal import Audited
from bot.core.language import Phrase
from bot.core.segments import Mention, Segment, Video
from frostagent.types.speech import Quote, Text

CONSOLE = Path(__file__).parents[3] / "adapters/console"
SPOKEN = re.compile(r"\bt\('([a-z_.]+)'[,)]|\b(?:trouble|speech)[=(]\"([a-z_.]+)\"")


def test_both_languages_have_the_same_words_with_the_same_values_in_them() -> None:
    words = [json.loads((WORDS_FOLDER / f"{language}.json").read_text("utf-8")) for language in LANGUAGES]
    assert list(words[0]) == list(words[1]) == list(read_words())
    for key, phrase in read_words().items():
        assert sorted(re.findall(r"\{\w+", phrase.zh)) == sorted(re.findall(r"\{\w+", phrase.en)), key


def test_every_key_that_a_page_names_is_there() -> None:
    files = [*CONSOLE.glob("templates/*.html"), *CONSOLE.glob("*.py")]
    named = {key for file in files for found in SPOKEN.findall(file.read_text("utf-8")) for key in found if key}
    assert len(named) > 15
    assert not [key for key in named if not language_named("en").has(key)]


def test_values_are_put_into_words() -> None:
    assert Language("en", {"a": Phrase("{all} 之 {n}", "{n} of {all}")})("a", n=1, all=2) == "1 of 2"


def test_of_one_thing_english_speaks_in_the_singular() -> None:
    english = language_named("en")
    plural = [key for key, words in read_words().items() if re.search(r"\{count\} (older )?\w+s\b", words.en)]
    assert len(plural) > 10
    for key in plural:
        if not key.endswith(".one"):
            assert english.has(f"{key}.one"), key
    assert (english("turn.requests", count=1), english("turn.requests", count=2)) == ("1 request", "2 requests")
    assert (english("turn.size", count="1"), english("turn.size", count="1.2k")) == ("1 token", "1.2k tokens")
    assert language_named("zh")("turn.requests", count=1) == "1 次请求"


def test_times_have_the_units_of_the_language() -> None:
    assert [language_named("zh").lasting(number) for number in (0.05, 0.412, 492, 9_000, 604_800)] == [
        "50 毫秒",
        "0.41 秒",
        "8 分钟",
        "2 小时",
        "7 天",
    ]
    assert language_named("en").lasting(492) == "8 min"


def refusals() -> Iterator[str]:
    """The key of each line with which a request is refused."""
    for file in CONSOLE.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            match node:
                case ast.Call(func=ast.Name(id="RequestRefused"), args=[_, ast.Constant(value=str(key))]):
                    yield key
                case ast.Call(func=ast.Name(id="RequestRefused")):
                    raise AssertionError(ast.dump(node))
                case _:
                    pass


def test_each_line_with_which_a_request_is_refused_is_there_and_no_other() -> None:
    assert len(set(refusals())) > 20
    assert {f"refused.why.{key}" for key in refusals()} == {key for key in read_words() if "refused.why." in key}


def test_each_reason_not_to_call_a_tool_is_told_where_it_is_one_and_nowhere_else() -> None:
    chinese = language_named("zh")
    reasons = [key.removeprefix("tools.unfit.") for key in read_words() if key.startswith("tools.unfit.")]
    assert len(reasons) == 8
    for reason in reasons:
        line = Audited(at=1.0, login="", address="", action="call tool", object=reason, outcome=f"refused: {reason}")
        assert re.fullmatch("被拒（[^a-z]+）", describe_audit_outcome(chinese, line)), reason
        assert describe_object(chinese, line) == reason
        assert chinese.text(REQUIRES.fill(requires=reason)) == f"要设置 {reason}"


def test_what_is_no_words_in_a_message_is_called_as_people_do() -> None:
    kinds = {*get_args(Segment), *get_args(SentSegment)} - {Text, Mention, Quote}
    tags = {kind.__struct_config__.tag for kind in kinds}
    assert len(tags) > 15
    assert [tag for tag in sorted(tags) if not language_named("zh").has(f"thing.{tag}")] == []
    text = plain_words((Text("看 "), Video())) + "[image][none]"
    assert language_named("zh").plain(text) == "看 [视频][图片][none]"
    assert language_named("en").plain(text) == "看 [video][picture][none]"
