"""Bodies in, answers out: the recorded ones to the letter, and the broken ones as errors."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from frostagent.models.openai.answer import RawAnswer, RawCall
from frostagent.models.openai.stream import AnswerReader
from frostagent.types.errors import ContentFiltered, ModelError, ModelTransport, ToolUseFailed
from tests.cases import each_case
from tests.frostagent.openai.conftest import Exchange

Cut = Callable[[bytes], Iterator[bytes]]

ERRORS = {
    "azure-86d1ca44-0": ContentFiltered,
    "azure-df4d4491-0": ContentFiltered,
    "groq-1de7f8b5-0": ToolUseFailed,
}
# `expect` does not look into x_groq, which 2.5 says to do; the bodies do count their tokens there.
USAGE_ELSEWHERE = {"groq-50da547a-0", "groq-ee5bd05a-0"}


def read(*chunks: bytes) -> RawAnswer:
    reader = AnswerReader()
    for chunk in chunks:
        reader.feed(chunk)
    return reader.finish()


def sse(*chunks: object, done: bool = True) -> bytes:
    lines = [chunk if isinstance(chunk, bytes) else b"data: " + orjson.dumps(chunk) for chunk in chunks]
    return b"".join(line + b"\n\n" for line in [*lines, *([b"data: [DONE]"] if done else [])])


def chunk(delta: object = None, finish: str | None = None, **fields: Any) -> dict[str, Any]:
    return {"id": "r1", "model": "m1", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **fields}


def whole(text: str, **fields: Any) -> dict[str, Any]:
    message = {"role": "assistant", "content": text}
    return {"id": "r1", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}], **fields}


HELLO = sse(chunk({"content": "hel"}), chunk({"content": "lo"}), chunk({}, "stop"))


# --- the corpus -----------------------------------------------------------------------------------


def by(size: int) -> Cut:
    return lambda body: (body[at : at + size] for at in range(0, len(body), size))


def at_random(body: bytes) -> Iterator[bytes]:
    dice = random.Random(body)
    at = 0
    while at < len(body):
        size = dice.choice((1, 2, 5, 30, 200, 1500, 9000))
        yield body[at : at + size]
        at += size


def call_of(call: RawCall) -> dict[str, str | None]:
    return {"id": call.id or None, "name": call.name or None, "arguments": call.arguments}


def described(answer: RawAnswer) -> dict[str, Any]:
    """The answer in the terms of `expect`."""
    words: dict[str, Any] = {
        "text": answer.text,
        "reasoning": answer.reasoning,
        "refusal": answer.refusal,
        "tool_calls": [call_of(call) for call in answer.tool_calls],
        "finish_reason": answer.finish_reason,
        "usage": answer.usage,
        "error": None,
    }
    if answer.done is not None:
        words["stream_done_marker"] = answer.done
    if answer.function_call:
        words["function_call"] = {"name": answer.function_call.name, "arguments": answer.function_call.arguments}
    return words


@pytest.mark.parametrize(
    "cut", [by(2**30), by(1), by(2), by(7), at_random], ids=["whole", "by 1", "by 2", "by 7", "at random"]
)
def test_every_recorded_200_gives_what_its_expect_says(recorded: tuple[Exchange, ...], cut: Cut) -> None:
    """All of them at every size; an error in a 200 is raised, so the half turn before it is not looked at (2.3)."""
    for exchange in recorded:
        if exchange.status != 200:
            continue
        if exchange.expect["error"]:
            with pytest.raises(ModelError, match=exchange.expect["error"]["message"][:40]) as caught:
                read(*cut(exchange.body))
            assert type(caught.value).__name__ == (exchange.error or ERRORS[exchange.name].__name__)
            continue
        words = described(read(*cut(exchange.body)))
        if exchange.name in USAGE_ELSEWHERE:
            assert words["usage"]["prompt_tokens"] > 0
            words["usage"] = None
        assert words == exchange.expect, exchange.name


# --- whatever the body is -------------------------------------------------------------------------


@each_case("lead", [b"\xef\xbb\xbf", b"\n\n \r\n", b" \xef\xbb\xbf\n", b": PROCESSING\n\n"])
def test_2_18_marks_and_blanks_before_a_body_are_nothing(lead: bytes) -> None:
    assert read(*by(1)(lead + HELLO)).text == "hello"
    assert read(*by(1)(lead.replace(b": PROCESSING", b"") + orjson.dumps(whole("a")))).text == "a"


def test_the_end_is_told_as_often_as_one_likes() -> None:
    reader = AnswerReader()
    reader.feed(sse(chunk({"content": "a"}, "stop"), done=False).rstrip())
    reader.end()
    assert reader.finish().text == "a"


def test_1_13_kilobytes_of_blanks_may_come_first() -> None:
    assert read(*[b"\n         \n"] * 500, orjson.dumps(whole("a")), b"\n").text == "a"


@each_case("body", [b"", b"  \n", b"\xef\xbb", b"Not Found", b": comment\n\n", orjson.dumps(whole("a"))[:-3]])
def test_a_body_that_is_no_answer_is_a_failure_of_transport(body: bytes) -> None:
    with pytest.raises(ModelTransport):
        read(body)


@each_case(
    ("body", "told"),
    [
        (b'data: {"choices": [{"delta": {"content": "sesame', "cut"),
        (
            sse(b'data: {"choices": [{"delta": {"content": "sesame}]}', chunk({}, "stop")),
            "unreadable chunk of 4. bytes",
        ),
        (sse(b'data: "sesame"', chunk({}, "stop")), "a chunk that is no object but str"),
        (sse(["sesame"], chunk({}, "stop")), "a chunk that is no object but list"),
        (sse({"response": "sesame"}), "nothing in the answer"),
        (b"sesame, said the model in plain text", "nothing in the answer"),
        (b'data: "sesame', "nothing in the answer"),
        (orjson.dumps(whole("sesame"))[:-3], "is no JSON: 105 bytes"),
        (b"[sesame]", "is no JSON: 8 bytes"),
        (b'["sesame"]', "no choices: 10 bytes"),
        (b'[["sesame"]]', "no choices: 12 bytes"),
        (orjson.dumps({"model": "m", "response": "sesame", "open sesame": 1}), "no choices: .* with model, response"),
        (orjson.dumps({"data": {"response": "sesame"}}), "no choices: .* with data"),
        (b"<think>sesame</think> sesame", "a web page came"),
    ],
)
def test_what_may_be_the_models_own_words_is_no_part_of_the_error(body: bytes, told: str) -> None:
    """A model's error goes to the log, where what is said in chats must not stand (README)."""
    with pytest.raises(ModelError, match=told) as caught:
        read(body)
    assert "sesame" not in str(caught.value)


# --- anything -------------------------------------------------------------------------------------

KEYS = [
    "choices", "delta", "message", "content", "tool_calls", "function", "name", "arguments", "id", "index", "usage",
    "finish_reason", "reasoning_details", "text", "type", "error", "x_groq", "data", "function_call", "refusal",
]  # fmt: skip
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=6),
    max_leaves=30,
)


@given(st.lists(JSON, max_size=4), st.dictionaries(st.sampled_from(KEYS), JSON))
def test_no_json_makes_the_reader_fail_otherwise_than_with_a_model_error(chunks: list[object], delta: object) -> None:
    for body in (sse(*(dump(chunk) for chunk in [*chunks, chunk(delta, "stop")])), *map(dump_bare, chunks)):
        try:
            read(body)
        except ModelError:
            continue


def dump_bare(value: object) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS) if is_small(value) else b"{}"


def dump(value: object) -> bytes:
    return b"data: " + dump_bare(value)


def is_small(value: object) -> bool:
    """Whether orjson can write it: no integer over 64 bits."""
    match value:
        case int():
            return abs(value) < 2**63
        case list():
            return all(map(is_small, value))
        case dict():
            return all(map(is_small, value.values()))
        case _:
            return True
