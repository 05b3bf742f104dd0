"""Untrusted JSON, field by field."""

from __future__ import annotations

import json

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.onebot.fields import clean, decimal, dump, load, mapping, number, sequence, text
from tests.cases import each_case

ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@each_case(
    ("raw", "expected"),
    [
        (r'"a\ud800b"', "a�b"),
        (r'"a\udc00\ud83d\ude00"', "a�😀"),
        (r'"\ud83d\ud83d\ude00"', "�😀"),
        (r'"a\u0000b"', "ab"),
        (r'"a\\u0000b\\ud800"', r"a\u0000b\ud800"),
        (r'"\\\u0000"', "\\"),
        (b'"a\xffb"', "a�b"),
        (b'"\xed\xa0\x80"', "���"),
        ('"a\ud800b"', "a���b"),
        (b'"plain"', "plain"),
    ],
)
def test_what_is_not_unicode_is_replaced_and_nul_is_left_out(raw: str | bytes, expected: str) -> None:
    assert load(raw) == expected


@each_case("raw", [b"", b"{not-json", "ping", '{"a":', b"\x00\x01", b'{"a":NaN}', b"[" * 5000])
def test_what_is_no_json_is_a_value_error(raw: str | bytes) -> None:
    with pytest.raises(json.JSONDecodeError):
        load(raw)


@given(st.text(st.characters(exclude_characters="\0")))
def test_what_json_writes_is_read_as_it_was_with_half_surrogates_replaced(said: str) -> None:
    assert load(json.dumps(said)) == said.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


@given(st.text())
def test_cleaned_text_can_go_anywhere(said: str) -> None:
    cleaned = clean(said)
    assert "\0" not in cleaned
    assert cleaned.encode().decode() == cleaned


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")))
def test_clean_text_stays_as_it_is(said: str) -> None:
    assert clean(said) is said or clean(said) == said


@given(ANY_JSON)
def test_every_field_can_be_read_as_anything(value: object) -> None:
    assert isinstance(text(value), str)
    assert isinstance(number(value), int)
    assert abs(decimal(value)) <= 1e19
    assert isinstance(mapping(value), dict)
    assert isinstance(sequence(value), list)


@each_case(
    ("value", "expected"),
    [("12", 12), (" -7 ", -7), (12, 12), (12.9, 12), (True, 0), ("twelve", 0), ("١٢", 0), ("", 0), (None, 0), ([], 0)],
)
def test_numbers_come_as_numbers_or_as_text(value: object, expected: int) -> None:
    assert number(value) == expected


@each_case("value", [2**63, -(2**63), 2**64 - 1, 2**70, "9" * 20, "-" + "9" * 19, 1e19, float("inf")])
def test_a_number_over_64_bits_is_none(value: object) -> None:
    """Neither JSON writers nor databases take it, so it must not come in."""
    assert number(value) == 0
    assert (number(2**63 - 1), number(str(1 - 2**63))) == (2**63 - 1, 1 - 2**63)


@each_case(
    ("value", "expected"),
    [
        (3, 3.0),
        (2.5, 2.5),
        (" -2.5 ", -2.5),
        ("7", 7.0),
        *[(bad, 0.0) for bad in (True, None, "1e3", "x", float("nan"))],
    ],
)
def test_decimals_come_as_numbers_or_as_text(value: object, expected: float) -> None:
    assert decimal(value) == expected


@given(ANY_JSON)
def test_every_number_read_can_be_written_again(value: object) -> None:
    assert orjson.loads(orjson.dumps(number(value))) == number(value)


@each_case(("value", "expected"), [(12345, "12345"), (None, ""), (False, ""), ("x", "x"), ({"a": [1]}, '{"a":[1]}')])
def test_text_comes_as_anything(value: object, expected: str) -> None:
    assert text(value) == expected


def test_what_nests_too_deeply_is_not_kept() -> None:
    deep: list[object] = []
    for _ in range(500):
        deep = [deep]
    assert dump(deep) == "{}"
