"""What is JSON, what is JSON in another dress, and what is neither."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frostagent.text.lenient_json import DEEPEST, LONGEST, AmbiguousJson, loads, read_json
from tests.cases import each_case

CALL = {"city": "北京", "days": 2, "exact": True, "near": None, "at": [1.5, {"x": -1}]}
WRITTEN = json.dumps(CALL, ensure_ascii=False)


@each_case("text", [WRITTEN, f" {WRITTEN}\n", json.dumps(CALL)])
def test_json_is_read_as_it_is(text: str) -> None:
    assert loads(text) == CALL
    assert read_json(text) == (CALL, "")


@each_case(
    ("text", "how"),
    [
        (f"```json\n{WRITTEN}\n```", "in a code fence"),
        (f"```\n{WRITTEN}```", "in a code fence"),
        (f"~~~~JSON {WRITTEN}\n~~~~\n", "in a code fence"),
        (f"```python\n{CALL}\n```", "in a code fence"),
        (WRITTEN + WRITTEN, "with something behind it"),
        (f"{WRITTEN}\n{json.dumps(CALL, sort_keys=True)} {WRITTEN}", "with something behind it"),
        (WRITTEN + "</tool_call>", "with something behind it"),
        (WRITTEN + "\n</parameter>\n</function><|im_end|>", "with something behind it"),
        (WRITTEN + "<｜tool▁call▁end｜>", "with something behind it"),
        (repr(CALL), "in Python's spelling"),
        (repr(CALL).replace("True", "true").replace("None", "null"), "in Python's spelling"),
        (WRITTEN[:-1] + ",}", "in Python's spelling"),
    ],
)
def test_json_in_another_dress_is_undressed(text: str, how: str) -> None:
    assert read_json(text) == (CALL, how)
    with pytest.raises(ValueError, match=r"\w"):
        loads(text)


def test_a_line_break_within_a_text_is_one() -> None:
    assert read_json('{"a": "1\n2\t3"}') == ({"a": "1\n2\t3"}, "line breaks within a text")


@each_case(
    "text",
    [
        '{"a": 1}{"a": 2}',
        '{"a": 1}{"a": true}',
        '{"a": 1}{"a": 1',
        '{"a": 1} and so on',
        '{"a": 1} <b>',
        "[1][1]",
        '{}{"a": 1}',
        '```json\n{"a": 1}',
        '```json\n{"a": 1}\n````',
        "Here: ```json\n{}\n```",
        "{'a': 1",
        "{'a': 1}{'a': 1}",
        "{'a': {1, 2}}",
        "{'a': b'1'}",
        "{'a': (1,)}",
        "{'a': 1 + 1}",
        "{'a': 1j}",
        "{'a': f'{1}'}",
        "{'a': open('x')}",
        "{'a': ...}",
        "{'a': -'x'}",
        "{'a': -True}",
        "{1: 2}",
        "{**{'a': 1}}",
        "{'a': nan}",
        r"{'a': '\d'}",
        "['a']",
        "",
        "hello",
    ],
)
def test_what_could_mean_another_thing_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        read_json(text)


@each_case(
    ("text", "why"),
    [
        ('{"a": NaN}', "NaN is no number"),
        ('{"a": [Infinity]}', "Infinity is no number"),
        ('{"a": -Infinity}', "-Infinity is no number"),
        ('```\n{"a": NaN}\n```', "NaN is no number"),
        ('{"a": NaN}{"a": NaN}', "NaN is no number"),
        ('{"a": 1, "a": 2}', '"a" is there twice'),
        ('{"a": {"b": 1, "b": true}}', '"b" is there twice'),
        ("{'a': 1, 'a': 2}", '"a" is there twice'),
        ('{"a": "\\ud83d"}', "half of a character"),
        ('{"\\ude00": 1}', "half of a character"),
        ('{"a": "\ud83d"}', "half of a character"),
        ("{'a': '\\ud83d'}", "half of a character"),
        ('{"a": ' * DEEPEST + "1" + "}" * DEEPEST, "nested more than"),
        ("[" * 100_000, "nested too deeply"),
        ("{}" + '{"a":' * 12_000, "nested too deeply"),
    ],
)
def test_what_breaks_who_works_with_it_is_refused(text: str, why: str) -> None:
    with pytest.raises(AmbiguousJson, match=why):
        read_json(text)


def test_a_name_twice_with_one_value_is_once() -> None:
    assert loads('{"a": {"b": 1}, "a": {"b": 1}}') == {"a": {"b": 1}}


def test_a_whole_character_in_two_escapes_and_the_last_level_are_fine() -> None:
    assert loads('"\\ud83d\\ude00"') == "\U0001f600"
    loads("[" * (DEEPEST - 1) + "1" + "]" * (DEEPEST - 1))


def test_what_is_long_is_read_strictly_or_not_at_all() -> None:
    long = json.dumps({"a": "x" * LONGEST})
    assert read_json(long) == ({"a": "x" * LONGEST}, "")
    with pytest.raises(ValueError, match="Extra data"):
        read_json(long + long)


@pytest.mark.parametrize(
    "text",
    [
        "`" * LONGEST,
        "```" + " " * (LONGEST - 3),
        "{}" * (LONGEST // 2),
        "{} " * (LONGEST // 3) + "x",
        "{'a': " + "-" * (LONGEST - 10) + "1}",
        "{'a': " + "(" * (LONGEST - 10),
        "{'a': " + "[" * 90 + "]" * 90 + "}",
        "{" + "'a': 'b' 'c', " * 4000 + "}",
    ],
)
def test_nothing_holds_it_up_or_brings_it_down(text: str) -> None:
    with contextlib.suppress(ValueError):
        read_json(text)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.text(max_size=4), JSON, max_size=4)


@given(OBJECTS)
def test_every_dress_of_an_object_is_that_object(value: dict[str, Any]) -> None:
    plain = json.dumps(value)
    for text in (plain, json.dumps(value, ensure_ascii=False, indent=1), plain + plain, f"```json\n{plain}\n```"):
        assert json.dumps(read_json(text)[0]) == plain
    assert read_json(repr(value))[0] == value


@given(OBJECTS.filter(bool), st.data())
def test_what_was_cut_off_is_never_read(value: dict[str, Any], data: st.DataObject) -> None:
    for text in (json.dumps(value), repr(value), f"```json\n{json.dumps(value)}\n```"):
        cut = text[: data.draw(st.integers(1, len(text) - 1))].strip()
        if cut.startswith("```") and json.dumps(value) in cut:
            continue  # whole, and only its fence was cut: of that there is more to read below
        with pytest.raises(ValueError, match=r"\w"):
            read_json(cut)


@given(st.text(st.sampled_from("{}[]'\"`:,1aNTn \\\n-"), max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        value, _ = read_json(text)
    except ValueError:
        return
    assert json.loads(json.dumps(value, allow_nan=False)) == value
