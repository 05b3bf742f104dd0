from __future__ import annotations

import codecs

from hypothesis import given
from hypothesis import strategies as st

from bot.core.ports import WebResponse
from tests.cases import each_case


def response(body: bytes) -> WebResponse:
    return WebResponse(200, body, "https://example.com/")


def is_json(body: bytes) -> bool:
    try:
        response(body).json()
    except ValueError:
        return False
    return True


@each_case(
    ("body", "value"),
    [
        (b'{"city": "\xe5\x8c\x97\xe4\xba\xac"}', {"city": "北京"}),
        (codecs.BOM_UTF8 + b"[1]", [1]),
        ('"北京"'.encode("utf-16"), "北京"),
        (b" null\n", None),
    ],
)
def test_a_body_of_json_is_its_value_in_any_encoding_json_knows(body: bytes, value: object) -> None:
    assert response(body).json() == value


@each_case(
    "body", [b"", b" ", b"<html>", b"{", b"{}{}", b"\xff\xfe\xfd", b'"\xc3("', b"[" * 200_000, b'{"a":' * 200_000]
)
def test_a_body_that_is_no_json_is_a_value_error(body: bytes) -> None:
    assert not is_json(body)


@given(st.binary())
def test_no_body_raises_anything_else(body: bytes) -> None:
    is_json(body)


def test_an_answer_has_no_headers_unless_it_has() -> None:
    assert response(b"").headers == {}
