"""Bodies that are one JSON text, rule by rule (numbers of vendors.md)."""

from __future__ import annotations

import orjson
import pytest

from frostagent.types.errors import (
    ContextOverflow,
    ModelBilling,
    ModelError,
    ModelNotFound,
    ModelOverloaded,
    ModelRejected,
    ModelTransport,
)
from tests.cases import each_case
from tests.frostagent.openai.test_stream import read, whole


def test_1_9_an_answer_may_be_wrapped_in_data() -> None:
    assert read(orjson.dumps({"data": whole("a"), "success": True})).text == "a"
    assert read(orjson.dumps({**whole("a"), "data": whole("b")})).text == "a"


@each_case(
    ("body", "kind"),
    [
        ({"error": {"message": "Insufficient Balance"}}, ModelBilling),
        ([{"error": {"message": "maximum context length", "code": 400}}], ContextOverflow),
        ({"code": 20012, "message": "no", "data": None}, ModelNotFound),
        ({"choices": []}, ModelTransport),
        ({"id": "x"}, ModelTransport),
        ({"choices": [{"index": 0, "error": {"code": 502, "message": "x"}}]}, ModelOverloaded),
        ({"choices": [], "base_resp": {"status_code": 1008, "status_msg": "insufficient balance"}}, ModelBilling),
    ],
)
def test_1_9_a_200_without_an_answer_is_an_error(body: object, kind: type[ModelError]) -> None:
    with pytest.raises(kind):
        read(orjson.dumps(body))


def test_the_candidate_with_index_0_is_read_wherever_it_stands() -> None:
    body = whole("a")
    body["choices"].insert(0, {"index": 1, "message": {"content": "b"}, "finish_reason": "stop"})
    assert read(orjson.dumps(body)).text == "a"


def test_a_web_page_with_status_200_says_to_check_the_base_url() -> None:
    with pytest.raises(ModelRejected, match=r"One API.*base URL"):
        read(b"<!doctype html><html><title>One API</title>")
