"""Every refusal we have seen or read of comes out as the class that says what to do about it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from frostagent.models.openai.errors import classify, clean_words, read_wait
from frostagent.types.errors import (
    BadHistory,
    ContentFiltered,
    ContextOverflow,
    ImagesUnsupported,
    ModelAuth,
    ModelBilling,
    ModelError,
    ModelNotFound,
    ModelOverloaded,
    ModelRateLimited,
    ModelRejected,
    ToolsUnsupported,
    ToolUseFailed,
)
from tests.cases import each_case
from tests.frostagent.openai.conftest import Exchange
from tests.frostagent.openai.corpus import shared

CLASS_OF_KIND: Mapping[str, type[ModelError]] = {
    "auth": ModelAuth,
    "bad_history": BadHistory,
    "bad_picture": ImagesUnsupported,
    "bad_request": ModelRejected,
    "bad_tool_schema": ModelRejected,
    "billing": ModelBilling,
    "content_filter": ContentFiltered,
    "context_overflow": ContextOverflow,
    "model_not_found": ModelNotFound,
    "overloaded": ModelOverloaded,
    "param_unsupported": ModelRejected,
    "picture_kind": ImagesUnsupported,
    "quota": ModelBilling,
    "rate_limit": ModelRateLimited,
    "reasoning_replay": BadHistory,
    "tools_unsupported": ToolsUnsupported,
    "unknown_cause": ModelRejected,
    "vision_unsupported": ImagesUnsupported,
}

# By the first code of the body, else by status: which class each recorded refusal is. The rest are ModelRejected.
CLASS_OF_RECORD: Mapping[str, type[ModelError]] = {
    "azure-47fbdde5-0": ModelRateLimited,
    "azure-610619e3-0": ModelNotFound,
    "azure-610619e3-1": ModelNotFound,
    "azure-610619e3-2": ModelNotFound,
    "deepseek-73443473-0": ModelAuth,
    "deepseek-75f2c2d9-0": ContextOverflow,
    "deepseek-860dfda4-0": ModelNotFound,
    "deepseek-8cd03b38-0": ImagesUnsupported,
    "deepseek-d72586fd-0": ImagesUnsupported,
    "doubleword-9fe57fc4-0": ModelAuth,
    "groq-81073a81-0": ToolUseFailed,
    "groq-bee1d1c2-0": ModelNotFound,
    "groq-e5071399-0": ModelNotFound,
    "groq-eb7f3173-0": ModelAuth,
    "llama.cpp-52d8f991-0": ToolsUnsupported,
    "llama.cpp-8ec5d855-0": ImagesUnsupported,  # it says so of every part that is no text; ours are pictures
    "llama.cpp-d16ab724-0": ModelAuth,
    "mistral-815770d7-0": ModelAuth,
    "ollama-d753e36e-0": ContextOverflow,
    "openai-0354037c-0": ImagesUnsupported,
    "openai-2ed62459-0": ModelNotFound,
    "openai-47bc1b92-0": ModelAuth,
    "openai-754fd83a-0": ModelAuth,
    "openai-ad6740f9-0": ModelNotFound,
    "openai-ad6740f9-1": ModelNotFound,
    "openai-bae709f2-0": ModelAuth,
    "openai-c93fbf2c-0": ModelNotFound,
    "openai-c96cff80-0": ModelNotFound,
    "openai-ce8c320e-1": ImagesUnsupported,
    "openai-f1bca068-0": ModelAuth,
    "openrouter-62b2cacc-0": ModelNotFound,
    "openrouter-d93f9325-0": ModelAuth,
    "openrouter-f35632fe-0": ModelRateLimited,
    "openrouter-f35632fe-1": ModelRateLimited,
    "openrouter-f35632fe-2": ModelRateLimited,
    "perplexity-7ef43ec8-0": ContextOverflow,
}


def dump(body: object) -> bytes:
    return body.encode() if isinstance(body, str) else orjson.dumps(body)


def test_every_quoted_error_is_of_the_class_of_its_kind(quoted_errors: tuple[Mapping[str, Any], ...]) -> None:
    wrong = [
        (quoted, error)
        for quoted in quoted_errors
        if type(error := classify(quoted["status"], dump(quoted["body"]))) is not CLASS_OF_KIND[quoted["kind"]]
        or error.status != quoted["status"]
        or not str(error)
    ]
    assert not wrong


@each_case(
    ("status", "words", "kind"),
    [
        (429, "rate limit of images exceeded", ModelRateLimited),
        (429, "the images of this minute exceed what you may send", ModelRateLimited),
        (400, "prompt is too long: the images exceed the context window", ContextOverflow),
        (402, "image size exceeds what is paid for", ModelBilling),
        (503, "image size limits exceeded for now", ModelOverloaded),
        (503, "image input is not available for now", ModelOverloaded),
    ],
)
def test_words_about_pictures_do_not_hide_another_cause(status: int, words: str, kind: type[ModelError]) -> None:
    assert type(classify(status, dump({"error": {"message": words}}))) is kind


def test_every_recorded_refusal_is_of_the_class_the_table_says(recorded: tuple[Exchange, ...]) -> None:
    refusals = [exchange for exchange in recorded if exchange.status != 200]
    got = {item.name: type(classify(item.status, item.body, item.headers)).__name__ for item in refusals}
    told = {item.name: item.error or CLASS_OF_RECORD.get(item.name, ModelRejected).__name__ for item in refusals}
    assert got == told
    assert len(set(told.values())) >= 8
    assert told.keys() >= CLASS_OF_RECORD.keys() or not shared()


@each_case(
    ("body", "message", "code"),
    [
        ({"error": {"message": "no", "type": "t", "code": "c", "param": None}}, "no", "c"),
        ({"error": {"message": "no", "type": "t", "code": None}}, "no", "t"),
        ({"error": {"message": "no", "code": 402}}, "no", "402"),
        ({"error": "no"}, "no", ""),
        ({"detail": "no"}, "no", ""),
        ({"detail": [{"loc": ["body", "stream_options"], "msg": "no"}]}, "body.stream_options: no", ""),
        ({"object": "error", "message": "no", "code": "3051"}, "no", "3051"),
        ({"code": 20000, "message": "no", "data": None}, "no", "20000"),
        ([{"error": {"message": "no", "status": "INVALID_ARGUMENT"}}], "no", "INVALID_ARGUMENT"),
        ({"type": "error", "error": {"type": "t", "message": "no"}}, "no", "error"),
        (
            {"error": {"message": "Provider returned error", "metadata": {"raw": "no"}}},
            "Provider returned error no",
            "",
        ),
        ({"error": {"message": "a", "metadata": {"raw": '{"error":{"message":"b"}}'}}}, "a b", ""),
        ({"base_resp": {"status_code": 1, "status_msg": "no"}}, "no", ""),
        ("plain words", "plain words", ""),
        ("<html><head><title>502 Bad\nGateway</title>", "web page: 502 Bad Gateway", ""),
        ("<h1>Sorry</h1>", "web page: Sorry", ""),
        ("", "HTTP 418 without a word", ""),
        ("{}", "HTTP 418 without a word", ""),
    ],
)
def test_words_and_code_are_found_in_every_shape_of_body(body: object, message: str, code: str) -> None:
    error = classify(418, dump(body))
    assert (type(error), str(error), error.code, error.status) == (ModelRejected, message, code, 418)


@each_case(
    ("status", "kind"),
    [
        (400, ModelRejected), (401, ModelAuth), (402, ModelBilling), (403, ModelAuth), (404, ModelNotFound),
        (408, ModelOverloaded), (409, ModelOverloaded), (413, ContextOverflow), (422, ModelRejected),
        (429, ModelRateLimited), (500, ModelOverloaded), (502, ModelOverloaded), (503, ModelOverloaded),
        (504, ModelOverloaded), (529, ModelOverloaded), (None, ModelOverloaded),
    ],
)  # fmt: skip
def test_without_words_the_status_decides(status: int | None, kind: type[ModelError]) -> None:
    assert type(classify(status, b"")) is kind


@each_case(
    ("status", "words", "kind"),
    [
        (429, "You exceeded your current quota, check your plan. Please retry in 36.5s.", ModelRateLimited),
        (413, "Request too large for model on tokens per minute (TPM): Limit 6000", ContextOverflow),
        (404, "No endpoints found that support tool use", ToolsUnsupported),
        (400, "`tool calling` is not supported with this model", ToolsUnsupported),
        (400, "`tools` is not supported by this model", ToolsUnsupported),
        (400, "image_url is only supported by certain models", ImagesUnsupported),
        (400, "At most 0 image(s) may be provided in one request.", ImagesUnsupported),
        (400, "m is not a multimodal model", ImagesUnsupported),
        (400, "Number of tools exceeds the limit of 128", ModelRejected),
        (500, "image input is not supported - hint: you may need to provide the mmproj", ImagesUnsupported),
        (400, "rate limit: maximum context length of all your requests", ModelRateLimited),
        (503, "The server is overloaded", ModelOverloaded),
        (400, "API key not valid. Please pass a valid API key.", ModelAuth),
        (400, "Model Not Exist", ModelNotFound),
        (400, "Invalid model: mistral-hugest", ModelNotFound),
        (400, "Invalid model name", ModelNotFound),
        (400, "unknown model 'x'", ModelNotFound),
        (400, "invalid model output format", ModelRejected),
        (400, "Failed to load image or audio file", ImagesUnsupported),
        (500, "failed to decode image", ImagesUnsupported),
    ],
)
def test_words_go_before_the_status(status: int, words: str, kind: type[ModelError]) -> None:
    assert type(classify(status, dump({"error": {"message": words}}))) is kind


@each_case("status", [301, 302, 307, 308])
def test_a_redirect_says_where_the_base_url_should_point(status: int) -> None:
    error = classify(status, b"", {"Location": "https://new.example/v1"})
    assert type(error) is ModelRejected
    assert "https://new.example/v1" in str(error)


@each_case(
    ("words", "limit"),
    [
        ("This model's maximum context length is 1,048,565 tokens. However, you requested 1250025", 1048565),
        ("length of prompt_tokens (57535) must be less than max_seq_len (32768).", 32768),
        ("Range of input length should be [1, 204800]", 204800),
        ("prompt is too long: 202128 tokens > 200000 maximum", 200000),
        ("the request exceeds the available context size (4096 tokens), try increasing it", 4096),
        ("prompt token count of 70000 exceeds the limit of 64000", 64000),
        ("prompt too long; exceeded max context length by 1119046 tokens", None),
    ],
)
def test_the_window_is_read_where_it_is_named(words: str, limit: int | None) -> None:
    error = classify(400, dump({"error": {"message": words}}))
    assert isinstance(error, ContextOverflow)
    assert error.limit == limit


def test_the_window_is_read_from_a_field_of_its_own() -> None:
    error = classify(400, dump({"error": {"type": "exceed_context_size_error", "message": "too long", "n_ctx": 8192}}))
    assert isinstance(error, ContextOverflow)
    assert error.limit == 8192


@each_case(
    ("headers", "words", "wait"),
    [
        ({"retry-after-ms": "1500", "retry-after": "9"}, "", 1.5),
        ({"retry-after-ms": "0", "retry-after": "1"}, "", 1.0),
        ({"retry-after-ms": "-1", "retry-after": "-1"}, "", None),
        ({"retry-after": "0"}, "", None),
        ({"retry-after": "0"}, "try again in 3s", 3.0),
        ({"retry-after": "nan"}, "", None),
        ({"retry-after": "1e400"}, "", None),
        ({"retry-after": "1060"}, "", 1060.0),
        ({"retry-after": "1700000000"}, "", 1_700_000_000 - 1000),
        ({"retry-after": "20s"}, "", 20.0),
        ({"retry-after": "Thu, 01 Jan 1970 00:16:50"}, "", 10.0),
        ({"retry-after": "1970-01-01T00:16:50Z"}, "", 10.0),
        ({"retry-after": "Fri, 31 Dec 99999 23:59:59 GMT"}, "", None),
        ({"retry-after": "2.5"}, "", 2.5),
        ({"retry-after": "Thu, 01 Jan 1970 00:16:50 GMT"}, "", 10.0),
        ({"retry-after": "Thu, 01 Jan 1970 00:00:00 GMT"}, "", None),
        ({"retry-after": "Thu, 01 Jan 1970 00:00:00 GMT", "x-ratelimit-reset": "1500000000"}, "", 1_499_999_000.0),
        ({"retry-after": "soon"}, "try again in 3s", 3.0),
        ({"x-ratelimit-reset": "1700000000000"}, "", 1_700_000_000 - 1000),
        ({"x-ratelimit-reset": "30"}, "", None),
        ({"x-ratelimit-reset": "6m0s"}, "", 360.0),
        ({"x-ratelimit-reset-tokens": "6m0s", "x-ratelimit-remaining-tokens": "0"}, "", 360.0),
        ({"x-ratelimit-reset-tokens": "6m0s", "x-ratelimit-remaining-tokens": "0"}, "try again in 2s", 2.0),
        ({"x-ratelimit-reset-requests": "1s", "x-ratelimit-remaining-requests": "59"}, "", None),
        ({}, "please try again after 1 seconds", 1.0),
        ({}, "Please try again in 350ms.", 0.35),
        ({}, "Please try again in 1m30.5s.", 90.5),
        ({}, "Please retry in 2 minutes", 120.0),
        ({}, "Please try again in 1h2m3s.", 3723.0),
        ({}, "请在20 秒后重试", 20.0),
        ({}, "Please try again in 0s", None),
        ({}, "please try again later", None),
    ],
)
def test_the_wait_comes_from_headers_first_and_words_then(
    headers: Mapping[str, str], words: str, wait: float | None
) -> None:
    assert read_wait(headers, words, now=1000.0) == wait


def test_a_date_without_a_zone_is_one_of_http_wherever_we_are(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "Asia/Shanghai")
        time.tzset()
        assert read_wait({"retry-after": "Thu, 01 Jan 1970 00:16:50"}, "", now=1000.0) == 10.0
    time.tzset()


def test_a_gateway_quotes_the_headers_of_the_vendor_behind_it() -> None:
    body = {"error": {"message": "Rate limit", "metadata": {"headers": {"X-RateLimit-Reset": "1700000005000"}}}}
    error = classify(429, dump(body), {}, now=1_700_000_000)
    assert isinstance(error, ModelRateLimited)
    assert error.retry_after == 5.0


@each_case(
    ("text", "masked"),
    [
        ("key sk-abcdef123456 is wrong", "key sk-*** is wrong"),
        ("account org-abc123<ak-xyz987>", "account org-***<ak-***>"),
        ("Bearer abc.def", "Bearer ***"),
        ("AIzaSyA1234567890123456789012345678901", "AIza***"),
        ("a\n\n  b", "a b"),
        ("cannot connect to http://me:word@proxy:8080/x", "cannot connect to http://***@proxy:8080/x"),
        ("see https://example.org/a@b", "see https://example.org/a@b"),
    ],
)
def test_keys_and_accounts_are_masked(text: str, masked: str) -> None:
    assert clean_words(text) == masked


def test_a_long_message_is_cut_to_500_characters() -> None:
    assert len(str(classify(500, dump({"error": {"message": "x" * 9000}})))) == 500


def test_a_code_is_short_and_says_no_secret() -> None:
    assert classify(400, dump({"error": {"message": "no", "code": "sk-abcdef123456"}})).code == "sk-***"
    assert len(classify(400, dump({"error": {"message": "no", "code": "x" * 9000}})).code) == 64


KEYS = ["error", "message", "code", "type", "detail", "metadata", "raw", "headers", "loc", "status", "n_ctx"]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(KEYS), inner),
)


@given(JSON | st.binary())
def test_no_body_is_too_strange_to_be_classified(body: object) -> None:
    assert isinstance(classify(400, body), ModelError)


@each_case("piece", [b"<title>", b"<title", b"<"])
def test_megabytes_of_unfinished_tags_hold_nobody_up(piece: bytes) -> None:
    """A quadratic search takes hours for these, and the test its time limit."""
    assert isinstance(classify(502, piece * 1_000_000), ModelOverloaded)
