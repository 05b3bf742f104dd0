"""What is read into types is what is read field by field."""

from __future__ import annotations

from typing import Any
from unittest import mock

import orjson
from hypothesis import given, settings
from hypothesis import strategies as st

from frostagent.models.openai import stream
from frostagent.models.openai.answer import RawAnswer, read_usual
from frostagent.models.openai.stream import AnswerReader
from frostagent.types.errors import ModelError
from tests.cases import each_case
from tests.frostagent.openai.test_stream import chunk, sse

WORD = st.none() | st.text(max_size=3)
ODD: list[Any] = [None, False, True, -1, 0, 2, 0.5, "", "a", [], {}, ["a"]]
CALL = st.just({"name": "f", "arguments": "{}"})


def one_in(number: int, rare: st.SearchStrategy[Any], usual: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.integers(1, number).flatmap(lambda drawn: rare if drawn == number else usual)


def fields(**optional: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """An object that has some of them; one in thirty is of another kind than it should be."""
    kinds = {name: one_in(30, st.sampled_from(ODD), kind) for name, kind in optional.items()}
    return st.fixed_dictionaries({}, optional=kinds)


USAGE = fields(prompt_tokens=st.integers(0, 9))
WORDS = fields(content=WORD, role=WORD, name=WORD, tool_calls=st.sampled_from([None, []]), refusal=st.just(""))
THOUGHTS = fields(content=WORD, reasoning_content=WORD, reasoning=WORD)
DETAILS = fields(reasoning=WORD, reasoning_details=st.just([{"type": "t", "text": "t"}]), refusal=WORD)
CALLS = fields(
    content=WORD, function_call=CALL, tool_calls=st.lists(fields(index=st.just(0), function=CALL, id=WORD), max_size=2)
)
DELTA = fields(delta=one_in(8, DETAILS | CALLS, WORDS | THOUGHTS)).filter(bool)
CHOICE_ALONE = fields(
    message=WORDS,
    index=one_in(8, st.just(1), st.just(0)),
    finish_reason=st.sampled_from([None, "", "stop", "length"]),
    native_finish_reason=WORD,
    usage=one_in(8, USAGE, st.none()),
    error=st.none(),
)
CHOICE = st.tuples(one_in(8, st.just({}), DELTA), CHOICE_ALONE).map(lambda parts: parts[0] | parts[1])
CHUNK = fields(
    choices=st.lists(CHOICE, max_size=2),
    usage=USAGE,
    id=WORD,
    model=WORD,
    x_groq=one_in(8, fields(usage=USAGE), st.none()),
    error=st.none(),
)
USUAL = st.fixed_dictionaries(
    {
        "choices": st.lists(
            st.fixed_dictionaries(
                {"delta": WORDS | THOUGHTS, "index": st.just(0)},
                optional={"finish_reason": st.sampled_from([None, "", "stop"]), "native_finish_reason": WORD},
            ),
            max_size=2,
        )
    },
    optional={"usage": USAGE, "id": WORD, "model": WORD, "x_groq": st.just({"id": "r"})},
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
    [chunk({"name": "x"}), {"choices": [{"message": {"content": "a"}, "finish_reason": "stop"}]}],
    [chunk({"reasoning": None}, "stop")],
    [chunk({"audio": {}})],
    [chunk({"content": None}), {"choices": [{"message": {"content": "a"}, "finish_reason": "stop"}]}],
    [chunk({"content": "a"}, usage={"prompt_tokens": 1})],
    [chunk({"content": "a"}, "stop"), {"choices": [], "usage": {"prompt_tokens": 1}}],
    [chunk({"content": "a"}), {"choices": [], "usage": {"prompt_tokens": 1}}],
    [chunk({}, usage={"prompt_tokens": 1}), chunk({"content": "a"}, "stop", usage={"prompt_tokens": 2})],
    [chunk({"content": "a"}, "length"), chunk({}, "") | {"id": "other", "model": "other"}],
    [chunk({"content": "a"}), {"choices": [{"index": 1, "delta": {"content": "b"}, "finish_reason": "stop"}]}],
    [chunk({"content": "a"}, "stop"), {"choices": [{"delta": {}, "finish_reason": "x", "native_finish_reason": "y"}]}],
]


@each_case("told", TOLD)
@each_case("is_done", [True, False])
def test_these_streams_say_the_same_however_their_chunks_are_read(told: list[dict[str, Any]], is_done: bool) -> None:
    check(sse(*told, done=is_done))


@given(st.lists(USUAL, max_size=4), st.lists(CHUNK, max_size=3), st.booleans())
def test_a_stream_says_the_same_however_its_chunks_are_read(
    first: list[dict[str, Any]], then: list[dict[str, Any]], is_done: bool
) -> None:
    check(sse(*first, *then, done=is_done))


def test_most_of_these_streams_are_read_so() -> None:
    read = list[int]()

    @settings(derandomize=True, database=None, max_examples=200)
    @given(st.lists(USUAL, max_size=4), st.lists(CHUNK, max_size=3))
    def draw(first: list[dict[str, Any]], then: list[dict[str, Any]]) -> None:
        with mock.patch.object(stream, "read_usual", side_effect=read_usual) as asked:
            outcome(sse(*first, *then))
        read.append(asked.call_count)

    draw()
    assert 2 * len([count for count in read if count >= 2]) > len(read) > 100


@each_case(("told", "asked"), [("wwww", 5), ("wcccw", 4), ("cccccw", 3), ("ccwccwccw", 10)])
def test_after_three_others_in_a_row_no_chunk_is_tried(told: str, asked: int) -> None:
    call = chunk({"tool_calls": [{"index": 0, "id": "c", "function": {"name": "f", "arguments": "{}"}}]})
    chunks_told = [chunk({"content": "a"}) if kind == "w" else call for kind in told]
    with mock.patch.object(stream, "read_usual", side_effect=read_usual) as usual:
        answer = outcome(sse(*chunks_told, chunk({}, "stop")))
    assert usual.call_count == asked
    assert isinstance(answer, RawAnswer)
    assert answer.text == "a" * told.count("w")


def test_an_event_that_is_named_an_error_is_one_whatever_is_in_it() -> None:
    body = b"event: error\ndata: " + orjson.dumps(chunk({"content": "a"}, "stop")) + b"\n\n"
    check(body)
    assert isinstance(outcome(body), tuple)


def check(body: bytes) -> None:
    """That reading the chunks into types makes no difference."""
    with mock.patch.object(stream, "read_usual", return_value=None):
        one_by_one = outcome(body)
    assert outcome(body) == one_by_one


@each_case(
    "usual",
    [
        chunk({"content": "a"}),
        chunk({"content": "a", "role": "assistant", "tool_calls": None, "refusal": None, "audio": {"id": "1"}}),
        chunk({"content": "a", "role": "assistant", "tool_calls": [], "refusal": "", "reasoning_details": []}),
        chunk({"content": None, "reasoning_content": "hm"}),
        chunk({}, "stop", usage={"prompt_tokens": 1}),
        chunk({"content": "a"}, x_groq={"id": "req_1"}),
        {"choices": [], "usage": {"prompt_tokens": 1}, "created": 1, "service_tier": "default"},
    ],
)
def test_words_thoughts_ends_and_counts_are_usual(usual: dict[str, Any]) -> None:
    assert read_usual(orjson.dumps(usual)) is not None


@each_case(
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
