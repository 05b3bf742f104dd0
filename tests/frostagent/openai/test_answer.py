"""The accumulator, rule by rule (numbers of vendors.md)."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from frostagent.models.openai.answer import MAX_SAID, MAX_THOUGHT, AnswerDraft, RawAnswer, RawCall
from frostagent.models.openai.stream import AnswerReader
from frostagent.types.errors import ModelRejected
from tests.cases import each_case


def gather(*deltas: dict[str, Any], whole: bool = False) -> RawAnswer:
    draft = AnswerDraft()
    for delta in deltas:
        draft.add(delta, whole=whole)
    return draft.freeze(done=None)


def call(*, arguments: object = None, **fields: Any) -> dict[str, Any]:
    """One delta with one call; `name` and `arguments` go into its function."""
    function = {"name": fields.pop("name", None), "arguments": arguments}
    return {"tool_calls": [{**fields, "function": function}]}


@each_case("content", [None, "", []])
def test_1_1_no_content_is_no_text(content: object) -> None:
    assert gather({"content": content}, {}).text == ""


def test_1_2_parts_of_content_go_where_they_belong() -> None:
    answer = gather({
        "content": [
            {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}, {"type": "text", "text": "m"}]},
            {"type": "reasoning", "text": "."},
            {"type": "text", "text": "a"},
            {"type": "output_audio"},
            "b",
            {"type": "refusal", "refusal": "no"},
        ]
    })  # fmt: skip
    assert (answer.reasoning, answer.text, answer.refusal) == ("hmm.", "ab", "no")


def test_1_3_an_object_as_content_is_its_json() -> None:
    assert gather({"content": {"city": "北京"}}).text == '{"city":"北京"}'


@each_case("none", [None, [], "", 5])
def test_1_5_no_calls_come_in_several_kinds(none: object) -> None:
    assert gather({"content": "a", "tool_calls": none}).tool_calls == ()


DETAIL = {"type": "reasoning.text", "text": "x"}


@each_case(
    ("piece", "most"),
    [
        ({"content": "x"}, MAX_SAID),
        ({"content": ["x"]}, MAX_SAID),
        ({"content": [{"type": "refusal", "refusal": "x"}]}, MAX_SAID),
        ({"refusal": "x"}, MAX_SAID),
        (call(index=0, arguments="x"), MAX_SAID),
        ({"function_call": {"name": "f", "arguments": "x"}}, MAX_SAID),
        ({"reasoning_content": "x"}, MAX_THOUGHT),
    ],
)
def test_what_never_ends_is_known_by_its_length(piece: dict[str, Any], most: int) -> None:
    def longer(value: Any) -> Any:
        match value:
            case "x":
                return "x" * (most // 2)
            case dict():
                return {key: longer(item) for key, item in value.items()}
            case list():
                return [longer(item) for item in value]
            case _:
                return value

    draft = AnswerDraft()
    draft.add(longer(piece))
    draft.add(longer(piece))
    assert not draft.is_too_long
    draft.add(piece)
    assert draft.is_too_long


def test_an_object_as_content_and_details_count_too() -> None:
    draft = AnswerDraft()
    draft.add({"content": {"a": "x" * MAX_SAID}})
    assert draft.is_too_long
    draft = AnswerDraft()
    for _ in range(3):
        draft.add({"reasoning": "-", "reasoning_details": [{**DETAIL, "text": "x" * (MAX_THOUGHT // 2)}]})
    assert draft.is_too_long


def streamed(text: str) -> bytes:
    return b"data: %b\n\n" % orjson.dumps({"choices": [{"delta": {"content": text}}]})


def test_an_answer_that_does_not_end_is_stopped_as_it_comes() -> None:
    reader, piece = AnswerReader(), streamed("哈" * 1000)
    for _ in range(MAX_SAID // 1000):
        reader.feed(piece)
    with pytest.raises(ModelRejected, match="does not end"):
        reader.feed(streamed("哈"))
    with pytest.raises(ModelRejected, match="does not end"):
        AnswerReader().feed(streamed("x" * (MAX_SAID + 1)))


def test_one_that_came_as_a_whole_is_refused_too() -> None:
    reader = AnswerReader()
    reader.feed(orjson.dumps({"choices": [{"message": {"content": "x" * (MAX_SAID + 1)}, "finish_reason": "stop"}]}))
    with pytest.raises(ModelRejected, match="does not end"):
        reader.finish()


def test_pieces_of_a_detail_are_joined_once_and_stay_apart_from_the_next() -> None:
    other = {"type": "reasoning.encrypted", "data": "?"}
    pieces = [[DETAIL], [{**DETAIL, "text": "y"}, other], [DETAIL], [{**DETAIL, "signature": "s", "text": "z"}]]
    details = gather(*({"reasoning_details": piece} for piece in pieces)).reasoning_details
    assert details == ({**DETAIL, "text": "xy"}, other, {**DETAIL, "text": "xz", "signature": "s"})


def test_1_10_a_refusal_is_gathered_like_text() -> None:
    assert gather({"content": None, "refusal": ""}, {"refusal": "I'm"}, {"refusal": " sorry"}).refusal == "I'm sorry"


def test_1_11_the_legacy_call_counts_only_with_a_name() -> None:
    assert gather({"function_call": {"name": "", "arguments": ""}}).function_call is None
    answer = gather({"function_call": {"name": "f", "arguments": '{"a"'}}, {"function_call": {"arguments": ":1}"}})
    assert answer.function_call == RawCall("", "f", '{"a":1}')


def test_2_17_every_field_of_a_delta_counts() -> None:
    answer = gather({"content": "a", "reasoning": "b", **call(index=0, id="c", name="f", arguments="{}")})
    assert (answer.text, answer.reasoning, len(answer.tool_calls)) == ("a", "b", 1)


def test_5_two_fields_of_one_reasoning_are_read_once() -> None:
    answer = gather({"reasoning": "a", "reasoning_content": "a"}, {"reasoning": "b", "reasoning_content": None})
    assert (answer.reasoning, answer.reasoning_field) == ("ab", "reasoning_content")


def test_5_pieces_of_reasoning_details_become_one_again() -> None:
    piece = {"type": "reasoning.text", "format": "f", "index": 0}
    answer = gather(
        {"reasoning": "th", "reasoning_details": [{**piece, "text": "th", "id": "r"}]},
        {"reasoning": "is", "reasoning_details": [{**piece, "text": "is"}]},
        {"reasoning_details": [{**piece, "signature": "s"}]},
        {"reasoning_details": [{"type": "reasoning.encrypted", "data": "d", "index": 0}]},
        {"reasoning_details": [{"type": "reasoning.encrypted", "data": "e", "index": 0}]},
    )
    assert answer.reasoning == "this"
    assert answer.reasoning_details == (
        {**piece, "text": "this", "id": "r", "signature": "s"},
        {"type": "reasoning.encrypted", "data": "d", "index": 0},
        {"type": "reasoning.encrypted", "data": "e", "index": 0},
    )


def test_5_reasoning_is_read_from_the_details_where_it_is_nowhere_else() -> None:
    details = [{"type": "reasoning.encrypted", "data": "x"}, {"type": "reasoning.summary", "summary": "so"}]
    answer = gather({"reasoning": None, "reasoning_details": details}, whole=True)
    assert (answer.reasoning, answer.reasoning_field) == ("so", "reasoning_details")
    assert list(answer.reasoning_details) == details


@each_case(
    ("delta", "pieces"),
    [
        ({"role": "assistant", "content": ""}, 0),
        ({"role": "assistant", "content": None, "tool_calls": [], "reasoning_details": []}, 0),
        ({"function_call": {"name": "", "arguments": ""}}, 0),
        ({"content": "h"}, 1),
        ({"role": "assistant", "content": "h"}, 1),
        ({"reasoning": "hm"}, 1),
        ({"reasoning_details": [{"type": "reasoning.encrypted", "data": "d"}]}, 1),
        ({"refusal": "no"}, 1),
        ({"function_call": {"name": "f"}}, 1),
        (call(index=0, name="f"), 1),
    ],
)
def test_an_answer_begins_with_its_first_word_and_not_with_a_role(delta: dict[str, Any], pieces: int) -> None:
    draft = AnswerDraft()
    draft.add(delta)
    assert draft.pieces == pieces
    draft.add(delta)
    assert draft.pieces == 2 * pieces


def test_2_18_a_character_in_two_halves_is_whole_again() -> None:
    assert gather({"content": "\ud83d"}, {"content": "\ude00"}).text == "😀"
