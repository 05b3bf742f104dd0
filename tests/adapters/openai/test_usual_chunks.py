"""What is read into types is what is read field by field."""

from __future__ import annotations

from typing import Any
from unittest import mock

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.openai import chunks
from adapters.openai.answer import RawAnswer
from adapters.openai.stream import AnswerReader
from adapters.openai.usual_chunks import read_usual
from bot.domain.errors import ModelError
from tests.adapters.openai.test_stream import chunk, sse

WORD = st.none() | st.text(max_size=3)
ODD: st.SearchStrategy[Any] = (
    st.none() | st.booleans() | st.integers(-1, 2) | st.floats(-1, 1) | st.just([]) | st.just({}) | st.just(["a"])
)
CALL = st.just({"name": "f", "arguments": "{}"})


def fields(**optional: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """An object that has some of them, nearly always of the right kind."""
    return st.fixed_dictionaries({}, optional={name: kind | kind | kind | ODD for name, kind in optional.items()})


USAGE = fields(prompt_tokens=st.integers(0, 9))
THOUGHTS = fields(reasoning_content=WORD, reasoning=WORD, reasoning_details=st.just([{"text": "t"}]))
WORDS = fields(content=WORD, role=WORD, name=WORD, refusal=WORD)
CALLS = fields(
    content=WORD, function_call=CALL, tool_calls=st.lists(fields(index=st.just(0), function=CALL, id=WORD), max_size=2)
)
CHOICE = fields(
    delta=WORDS | WORDS | THOUGHTS | CALLS,
    message=WORDS,
    index=st.integers(0, 1),
    finish_reason=st.sampled_from([None, "", "stop", "length"]),
    native_finish_reason=WORD,
    usage=USAGE,
    error=st.just(None),
)
CHUNK = fields(
    choices=st.lists(CHOICE, max_size=2), usage=USAGE, id=WORD, model=WORD, x_groq=fields(usage=USAGE), error=st.none()
)


def outcome(body: bytes) -> RawAnswer | tuple[type[ModelError], str]:
    """The answer, or how it failed."""
    reader = AnswerReader()
    try:
        reader.feed(body)
        return reader.finish()
    except ModelError as error:
        return type(error), str(error)


TOLD: list[list[dict[str, Any]]] = [
    [chunk({"reasoning": "hm"}), chunk({"content": "a"}, "stop")],
    [chunk({"reasoning_content": "hm", "reasoning": "h"}), chunk({"reasoning": "m", "content": "a"}, "stop")],
    [{"choices": [{"delta": {}}]}, {"choices": [{"message": {"content": "a"}, "finish_reason": "stop"}]}],
    [chunk({"role": "assistant"}), {"choices": [{"message": {"content": "a"}, "finish_reason": "stop"}]}],
    [chunk({"content": None}), {"choices": [{"message": {"content": "a"}, "finish_reason": "stop"}]}],
    [chunk({"content": "a"}, usage={"prompt_tokens": 1})],
    [chunk({"content": "a"}, "stop"), {"choices": [], "usage": {"prompt_tokens": 1}}],
    [chunk({"content": "a"}), {"choices": [], "usage": {"prompt_tokens": 1}}],
    [chunk({}, usage={"prompt_tokens": 1}), chunk({"content": "a"}, "stop", usage={"prompt_tokens": 2})],
    [chunk({"content": "a"}, "length"), chunk({}, "") | {"id": "other", "model": "other"}],
    [chunk({"content": "a"}), {"choices": [{"index": 1, "delta": {"content": "b"}, "finish_reason": "stop"}]}],
    [chunk({"content": "a"}, "stop"), {"choices": [{"delta": {}, "finish_reason": "x", "native_finish_reason": "y"}]}],
]


@pytest.mark.parametrize("told", TOLD)
@pytest.mark.parametrize("is_done", [True, False])
def test_these_streams_say_the_same_however_their_chunks_are_read(told: list[dict[str, Any]], is_done: bool) -> None:
    check(sse(*told, done=is_done))


@given(st.lists(CHUNK, max_size=5), st.booleans())
def test_a_stream_says_the_same_however_its_chunks_are_read(told: list[dict[str, Any]], is_done: bool) -> None:
    check(sse(*told, done=is_done))


def test_an_event_that_is_named_an_error_is_one_whatever_is_in_it() -> None:
    body = b"event: error\ndata: " + orjson.dumps(chunk({"content": "a"}, "stop")) + b"\n\n"
    check(body)
    assert isinstance(outcome(body), tuple)


def check(body: bytes) -> None:
    """That reading the chunks into types makes no difference."""
    with mock.patch.object(chunks, "read_usual", return_value=None):
        one_by_one = outcome(body)
    assert outcome(body) == one_by_one


@pytest.mark.parametrize(
    "usual",
    [
        chunk({"content": "a"}),
        chunk({"content": "a", "role": "assistant", "tool_calls": None, "refusal": None, "audio": {"id": "1"}}),
        chunk({"content": None, "reasoning_content": "hm"}),
        chunk({}, "stop", usage={"prompt_tokens": 1}),
        {"choices": [], "usage": {"prompt_tokens": 1}, "created": 1, "service_tier": "default"},
    ],
)
def test_words_thoughts_ends_and_counts_are_usual(usual: dict[str, Any]) -> None:
    assert read_usual(orjson.dumps(usual)) is not None


@pytest.mark.parametrize(
    "data",
    [
        orjson.dumps(chunk({"tool_calls": [{"index": 0}]})),
        orjson.dumps({"error": {"message": "no"}, "choices": []}),
        orjson.dumps({"choices": [{"message": {"content": "a"}}]}),
        orjson.dumps({"choices": None, "usage": {"prompt_tokens": 1}}),
        b'{"choices":[]}{"choices":[]}',
        b'{"choices":[{"delta":{"content":"\\ud83d"}}]}',
        b'{"choices":[{"delta":{"content":"\xff"}}]}',
        b'{"choices":[],"x":' + b"[" * 100_000,
        b"",
        b"[DONE]",
    ],
)
def test_all_else_is_not(data: bytes) -> None:
    assert read_usual(data) is None
