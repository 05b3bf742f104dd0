"""The events of streams, rule by rule (numbers of vendors.md)."""

from __future__ import annotations

import re
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from frostagent.models.openai.stream import AnswerReader
from frostagent.types.errors import (
    ContextOverflow,
    ModelBilling,
    ModelError,
    ModelOverloaded,
    ModelRejected,
    ModelTransport,
    ToolUseFailed,
)
from tests.cases import each_case
from tests.frostagent.openai.test_stream import HELLO, chunk, read, sse


def test_a_stream_is_read_to_its_end() -> None:
    answer = read(HELLO)
    assert (answer.text, answer.finish_reason, answer.done) == ("hello", "stop", True)
    assert (answer.id, answer.model) == ("r1", "m1")


WORDS = st.none() | st.text(max_size=5)
DELTAS = st.fixed_dictionaries(
    {},
    optional={
        "role": st.just("assistant"),
        "content": WORDS | st.just([{"type": "text", "text": "p"}]),
        "reasoning_content": WORDS,
        "reasoning": WORDS,
        "refusal": WORDS,
        "tool_calls": st.none() | st.just([]) | st.just([{"index": 0, "id": "c", "function": {"name": "look"}}]),
        "audio": st.just({"id": "a"}),
    },
)
CHOICES = st.fixed_dictionaries(
    {"delta": st.none() | DELTAS},
    optional={
        "index": st.sampled_from([None, 0, 1]),
        "finish_reason": st.sampled_from([None, "", "stop", "length"]),
        "native_finish_reason": WORDS,
        "usage": st.none() | st.just({"prompt_tokens": 3}),
        "message": st.just({"content": "whole"}),
    },
)
CHUNKS = st.fixed_dictionaries(
    {"choices": st.lists(CHOICES, max_size=2)},
    optional={
        "id": WORDS,
        "model": WORDS,
        "usage": st.sampled_from([None, {}, {"prompt_tokens": 1}, {"prompt_tokens": 2, "completion_tokens": 1}]),
        "x_groq": st.none() | st.just({"usage": {"prompt_tokens": 4}}),
    },
)


def read_or_refuse(chunks: list[dict[str, Any]]) -> object:
    try:
        return read(sse(*chunks))
    except ModelError as error:
        return type(error), re.sub(r"\d+ bytes", "", str(error))


@given(st.lists(CHUNKS, max_size=5))
def test_a_chunk_read_into_types_says_what_it_says_field_by_field(chunks: list[dict[str, Any]]) -> None:
    field_by_field = [{**one, "error": ""} for one in chunks]  # of no type, and no error
    assert read_or_refuse(chunks) == read_or_refuse(field_by_field)


def test_2_2_an_end_without_a_marker_is_an_end_after_a_finish_reason() -> None:
    answer = read(sse(chunk({"content": "a"}, "stop"), done=False))
    assert (answer.text, answer.done) == ("a", False)


@each_case(
    "body",
    [
        sse(chunk({"content": "a"}), done=False),
        sse(chunk({"content": "a"})),
        sse(chunk({"content": "a"}, usage={"prompt_tokens": 1}), done=False),
        sse({"choices": [], "usage": {"prompt_tokens": 1}}, chunk({"content": "a"}), done=False),
        HELLO[: HELLO.index(b'"stop"')],
        HELLO[: HELLO.index(b"lo")],
    ],
)
def test_2_2_a_stream_with_neither_finish_reason_nor_closing_usage_was_cut(body: bytes) -> None:
    with pytest.raises(ModelTransport, match="cut"):
        read(body)


@each_case(
    "body",
    [
        sse(chunk({"content": "a"}), {"choices": [], "usage": {"prompt_tokens": 1}}, done=False),
        sse(chunk({"content": "a"}, usage={"prompt_tokens": 1})),
    ],
)
def test_2_2_usage_at_the_end_is_an_end_too(body: bytes) -> None:
    assert (read(body).text, read(body).finish_reason) == ("a", None)


def test_id_and_model_may_come_late() -> None:
    answer = read(sse({**chunk({"content": "a"}), "model": None}, {**chunk({}, "stop"), "id": None}))
    assert (answer.id, answer.model) == ("r1", "m1")


def test_the_first_id_and_model_are_those_of_the_answer() -> None:
    late = {"choices": [], "usage": {"prompt_tokens": 1}, "id": "r2", "model": "m2"}
    answer = read(sse(chunk({"content": "a"}, "stop"), late))
    assert (answer.id, answer.model, answer.usage) == ("r1", "m1", {"prompt_tokens": 1})


def test_2_2_a_last_event_needs_no_blank_line() -> None:
    assert read(HELLO.removesuffix(b"\n\n")).done is True
    assert read(sse(chunk({"content": "a"}, "stop"), done=False).rstrip()).text == "a"


@each_case(
    ("event", "kind"),
    [
        (
            {"error": {"message": "x", "code": 502}, "choices": [{"index": 0, "finish_reason": "error"}]},
            ModelOverloaded,
        ),
        ({"error": {"message": "Token limit reached"}}, ContextOverflow),
        ({"error": "Insufficient Balance"}, ModelBilling),
        (b'event: error\ndata: {"message": "tool call validation failed", "code": 400}', ToolUseFailed),
        (b"event: error\ndata: upstream is gone", ModelOverloaded),
        (b'event: error\ndata: {"code": 400}', ModelRejected),
        ({"object": "error", "message": "maximum context length is 4096 tokens", "code": 400}, ContextOverflow),
        (chunk(error={"code": 400, "message": "bad"}), ModelRejected),
        ({"choices": [{"index": 0, "delta": {}, "error": {"code": 503, "message": "x"}}]}, ModelOverloaded),
    ],
)
def test_2_3_an_error_in_a_stream_is_raised_and_no_half_turn_delivered(event: object, kind: type[ModelError]) -> None:
    reader = AnswerReader()
    reader.feed(sse(chunk({"content": "half"}), done=False))
    with pytest.raises(ModelError) as caught:
        reader.feed(sse(event))
    assert type(caught.value) is kind


def test_2_4_chunks_without_choices_or_delta_are_passed_over() -> None:
    strange: tuple[object, ...] = (
        {"choices": [], "prompt_filter_results": [{}]},
        {"choices": None},
        {"choices": [{"index": 0}]},
        {"x": 1},
    )
    assert read(sse(*strange, chunk({"content": "a"}, "stop"))).text == "a"


@each_case(
    "last",
    [
        {"choices": [], "usage": {"prompt_tokens": 3}},
        chunk({}, "stop", usage={"prompt_tokens": 3}),
        chunk({}, "stop", x_groq={"usage": {"prompt_tokens": 3}}),
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop", "usage": {"prompt_tokens": 3}}]},
    ],
)
def test_2_5_the_last_usage_counts_wherever_it_is(last: object) -> None:
    first = chunk({"content": "a"}, usage={"prompt_tokens": 1})
    assert read(sse(first, chunk({}, "stop", usage=None), last)).usage == {"prompt_tokens": 3}


def test_2_6_a_finish_reason_may_come_twice() -> None:
    body = sse(chunk({"content": "a"}, "stop"), chunk({"content": ""}, "stop", usage={"prompt_tokens": 1}))
    assert (read(body).finish_reason, read(body).usage) == ("stop", {"prompt_tokens": 1})


@each_case("blank", ["", None])
def test_2_7_a_blank_finish_reason_in_a_delta_is_none(blank: str | None) -> None:
    assert (
        read(sse(chunk({"role": "", "content": "a"}, "stop"), chunk({"content": "b"}, blank))).finish_reason == "stop"
    )


def test_2_15_only_the_first_candidate_is_read() -> None:
    other = {"choices": [{"index": 1, "delta": {"content": "b"}, "finish_reason": "length"}]}
    without_index = {"choices": [{"delta": {"content": "c"}}]}
    answer = read(sse(chunk({"content": "a"}), other, without_index, chunk({}, "stop")))
    assert (answer.text, answer.finish_reason) == ("ac", "stop")


def test_2_16_a_message_beside_a_delta_is_ignored_and_alone_is_the_answer() -> None:
    beside = {"choices": [{"index": 0, "delta": {"content": "a"}, "message": {"content": "a"}}]}
    alone = {"choices": [{"index": 0, "message": {"content": "a"}, "finish_reason": "stop"}]}
    assert read(sse(beside, chunk({}, "stop"))).text == "a"
    assert read(sse(alone, alone)).text == "a"
    said = chunk({"role": "assistant", "content": ""})
    begun = {"choices": [{"index": 0, "message": {"content": "no"}}]}
    befores: list[dict[str, Any]] = [{"role": "assistant"}, {"content": None}, {"name": "x"}, {"audio": {}}, {}]
    for before in befores:
        assert read(sse(chunk(before), alone)).text == "a", before
        assert read(sse(chunk(before), begun, said, alone)).text == "a", before
    assert read(sse(begun, chunk({}, "stop"))).text == "no"
    assert read(sse(chunk({"content": "b"}), alone)).text == "b"


def test_2_18_events_without_blank_lines_between_are_told_apart() -> None:
    assert read(HELLO.replace(b"\n\n", b"\n")).text == "hello"


def test_2_18_one_chunk_may_be_spread_over_data_lines() -> None:
    pretty = b"\n".join(
        b"data: " + line for line in orjson.dumps(chunk({"content": "a"}, "stop"), option=2).splitlines()
    )
    assert read(sse(pretty)).text == "a"


def test_2_18_half_an_emoji_in_a_chunk_is_no_broken_chunk() -> None:
    halves = (
        b'data: {"choices":[{"delta":{"content":"\\ud83d"}}]}',
        b'data: {"choices":[{"delta":{"content":"\\ude00"}}]}',
    )
    assert read(sse(*halves, chunk({}, "stop"))).text == "😀"


def test_a_chunk_that_cannot_be_read_breaks_the_answer() -> None:
    for line in (b'data: {"choices"', b"data: 5", b"data: []"):
        with pytest.raises(ModelTransport):
            read(sse(line, chunk({}, "stop")))


def test_nothing_after_the_marker_is_read() -> None:
    assert read(HELLO + b"data: {oops\n\n").text == "hello"


def test_a_cut_after_the_finish_reason_costs_no_answer() -> None:
    assert read(sse(chunk({"content": "a"}, "stop"), done=False) + b'data: {"choices":[],"usa').text == "a"


MESSAGE = {"choices": [{"message": {"content": "a"}, "finish_reason": "stop"}]}
OTHER = {"choices": [{"index": 1, "delta": {"content": "b"}, "finish_reason": "stop"}]}
STRANGE = {"choices": [{"delta": {}, "finish_reason": "x", "native_finish_reason": "y"}]}


@each_case(
    ("told", "text", "reasoning", "finish", "prompt"),
    [
        ([chunk({"reasoning": "hm"}), chunk({"content": "a"}, "stop")], "a", "hm", "stop", 0),
        (
            [
                chunk({"reasoning_content": "hm", "reasoning": "h"}),
                chunk({"reasoning": "m", "content": "a"}, "stop"),
            ],
            "a", "hmm", "stop", 0,
        ),
        ([{"choices": [{"delta": {}}]}, MESSAGE], "a", "", "stop", 0),
        ([chunk({"role": "assistant"}), MESSAGE], "a", "", "stop", 0),
        ([chunk({"name": "x"}), MESSAGE], "a", "", "stop", 0),
        ([chunk({"content": None}), MESSAGE], "a", "", "stop", 0),
        ([chunk({"content": "b"}), MESSAGE], "b", "", "stop", 0),
        ([chunk({"reasoning": None}, "stop")], "", "", "stop", 0),
        ([chunk({"content": "a"}, usage={"prompt_tokens": 1})], "a", "", None, 1),
        ([chunk({"content": "a"}, "stop"), {"choices": [], "usage": {"prompt_tokens": 1}}], "a", "", "stop", 1),
        (
            [
                chunk({}, usage={"prompt_tokens": 1}),
                chunk({"content": "a"}, "stop", usage={"prompt_tokens": 2}),
            ],
            "a", "", "stop", 2,
        ),
        ([chunk({"content": "a"}, "length"), chunk({}, "") | {"id": "other", "model": "other"}], "a", "", "length", 0),
        ([OTHER, chunk({"content": "a"}), OTHER, chunk({}, "stop")], "a", "", "stop", 0),
        ([chunk({"content": "a"}, "stop"), STRANGE], "a", "", "x", 0),
    ],
)  # fmt: skip
def test_every_field_of_a_chunk_counts_and_the_last_end_and_usage_win(
    told: list[dict[str, Any]], text: str, reasoning: str, finish: str | None, prompt: int
) -> None:
    answer = read(sse(*told))
    assert (answer.text, answer.reasoning, answer.finish_reason) == (text, reasoning, finish)
    assert (answer.usage or {}).get("prompt_tokens", 0) == prompt
    assert answer.id in {"", "r1"}


def test_an_event_that_is_named_an_error_is_one_whatever_is_in_it() -> None:
    with pytest.raises(ModelError):
        read(b"event: error\ndata: " + orjson.dumps(chunk({"content": "a"}, "stop")) + b"\n\n")
