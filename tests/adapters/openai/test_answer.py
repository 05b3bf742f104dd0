"""The accumulator, rule by rule (numbers of quirks.md)."""

from __future__ import annotations

from typing import Any

import pytest

from adapters.openai.answer import Answer, Draft, RawCall, mend, to_json

Calls = list[tuple[str, str, str | None]]


def gather(*deltas: dict[str, Any], whole: bool = False) -> Answer:
    draft = Draft()
    for delta in deltas:
        draft.add(delta, whole=whole)
    return draft.freeze(finish_reason=None, native_finish_reason=None, usage=None, model="", identity="", done=None)


def call(*, arguments: object = None, **fields: Any) -> dict[str, Any]:
    """One delta with one call; `name` and `arguments` go into its function."""
    function = {"name": fields.pop("name", None), "arguments": arguments}
    return {"tool_calls": [{**fields, "function": function}]}


def calls(*deltas: dict[str, Any]) -> Calls:
    return [(item.id, item.name, item.arguments) for item in gather(*deltas).tool_calls]


@pytest.mark.parametrize("content", [None, "", []])
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


@pytest.mark.parametrize("none", [None, [], "", 5])
def test_1_5_no_calls_come_in_several_kinds(none: object) -> None:
    assert gather({"content": "a", "tool_calls": none}).tool_calls == ()


def test_1_10_a_refusal_is_gathered_like_text() -> None:
    assert gather({"content": None, "refusal": ""}, {"refusal": "I'm"}, {"refusal": " sorry"}).refusal == "I'm sorry"


def test_1_11_the_legacy_call_counts_only_with_a_name() -> None:
    assert gather({"function_call": {"name": "", "arguments": ""}}).function_call is None
    answer = gather({"function_call": {"name": "f", "arguments": '{"a"'}}, {"function_call": {"arguments": ":1}"}})
    assert answer.function_call == RawCall("", "f", '{"a":1}')


def test_1_12_a_custom_call_is_a_call_without_a_name() -> None:
    raw = {"tool_calls": [{"id": "c", "type": "custom", "custom": {"name": "x", "input": "y"}}]}
    assert gather(raw).tool_calls == (RawCall("c", "", None),)


def test_a_call_grows_by_its_index() -> None:
    assert calls(
        call(index=0, id="a", name="f", arguments=""),
        call(index=0, arguments='{"x"'),
        call(index=0, arguments=":1}"),
    ) == [("a", "f", '{"x":1}')]


@pytest.mark.parametrize("blank", ["", None, " "])
def test_2_8_a_blank_id_or_name_never_overwrites(blank: str | None) -> None:
    assert calls(
        call(index=0, id="a", name="f", arguments=""),
        call(index=0, id=blank, name=blank, arguments="{}"),
    ) == [("a", "f", "{}")]


def test_2_9_calls_without_index_are_told_apart_by_id() -> None:
    assert calls(
        call(id="a", name="f", arguments="{}"),
        call(id="b", name="f", arguments="{}"),
        call(arguments=" "),
    ) == [("a", "f", "{}"), ("b", "f", "{} ")]


def test_2_9_a_new_id_in_every_delta_begins_no_new_call() -> None:
    grown = calls(
        call(index=0, id="a", name="f"),
        call(index=0, id="a2", arguments='{"x"'),
        call(index=0, id="a3", arguments=":1}"),
    )
    assert grown == [("a", "f", '{"x":1}')]


def test_2_10_calls_with_neither_id_nor_index_are_told_apart_by_name() -> None:
    assert calls(
        call(id="", name="f", arguments="{"),
        call(id="", arguments="}"),
        call(id="", name="f", arguments="{}"),
    ) == [("", "f", "{}"), ("", "f", "{}")]


def test_2_11_a_name_in_every_chunk_is_one_name() -> None:
    assert calls(
        call(index=0, id="0", name="f", arguments=""),
        call(index=0, id="0", name="f", arguments='{"a'),
        call(index=0, id="0", name="f", arguments='":1}'),
        call(index=0, id="0", name="f", arguments=""),
    ) == [("0", "f", '{"a":1}')]


def test_2_12_several_calls_come_in_one_delta() -> None:
    both = {"tool_calls": [{"id": "a", "function": {"name": "f"}}, {"id": "b", "function": {"name": "g"}}]}
    assert calls(both) == [("a", "f", None), ("b", "g", None)]


def test_2_13_gaps_in_the_indexes_leave_the_order_of_appearance() -> None:
    assert calls(
        call(index=7, id="a", name="f", arguments="{"),
        call(index=2, id="b", name="g", arguments="{"),
        call(index=7, arguments="}"),
        call(index=2, arguments="}"),
    ) == [("a", "f", "{}"), ("b", "g", "{}")]


def test_2_13_one_call_under_two_indexes_is_one_call() -> None:
    assert calls(
        call(index=0, id="a", name="f", arguments='{"x":'),
        call(index=1, id="a", arguments="1}"),
    ) == [("a", "f", '{"x":1}')]


def test_2_13_parallel_calls_may_all_have_index_0() -> None:
    with_ids = (call(index=0, id=i, name="f", arguments="{}") for i in ("a", "b"))
    assert calls(*with_ids) == [("a", "f", "{}"), ("b", "f", "{}")]
    assert calls(
        call(index=0, name="read", arguments='{"p":0}'),
        call(index=0, name="write", arguments='{"p":1}'),
        call(index=0, name="read", arguments='{"p":2}'),
        call(index=0, name="read", arguments='{"p":3}'),
    ) == [("", "read", '{"p":0}'), ("", "write", '{"p":1}'), ("", "read", '{"p":2}'), ("", "read", '{"p":3}')]


def test_2_14_parallel_calls_may_all_have_one_id() -> None:
    assert calls(
        call(index=0, id="x", name="f", arguments='{"p":0}'),
        call(index=1, id="x", name="f", arguments='{"p":1}'),
        call(index=2, id="x", name="g", arguments='{"p"'),
        call(index=2, arguments=":2}"),
    ) == [("x", "f", '{"p":0}'), ("x", "f", '{"p":1}'), ("x", "g", '{"p":2}')]


def test_2_14_calls_of_a_whole_message_are_never_merged() -> None:
    item = {"id": "x", "function": {"name": "f", "arguments": "{}"}}
    assert len(gather({"tool_calls": [item, item]}, whole=True).tool_calls) == 2


def test_2_17_every_field_of_a_delta_counts() -> None:
    answer = gather({"content": "a", "reasoning": "b", **call(index=0, id="c", name="f", arguments="{}")})
    assert (answer.text, answer.reasoning, len(answer.tool_calls)) == ("a", "b", 1)


@pytest.mark.parametrize(("arguments", "text"), [({"a": 1}, '{"a":1}'), ([], "[]"), (None, None), ("", "")])
def test_3_4_arguments_come_as_text_or_as_json(arguments: object, text: str | None) -> None:
    assert calls(call(id="a", name="f", arguments=arguments)) == [("a", "f", text)]


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


def test_5_vendor_fields_stay_on_the_call() -> None:
    signature = {"google": {"thought_signature": "s"}}
    answer = gather(
        call(index=0, id="a", name="f", arguments="{}", type="function", extra_content=signature, note=None)
    )
    assert answer.tool_calls[0].extras == {"extra_content": signature}


@pytest.mark.parametrize(
    ("delta", "begun"),
    [
        ({"role": "assistant", "content": ""}, False),
        ({"content": "h"}, True),
        ({"reasoning": "hm"}, True),
        (call(index=0, name="f"), True),
    ],
)
def test_an_answer_begins_with_its_first_word_and_not_with_a_role(delta: dict[str, Any], begun: bool) -> None:
    draft = Draft()
    draft.add(delta)
    assert draft.has_begun is begun
    assert not draft.is_empty


def test_2_18_a_character_in_two_halves_is_whole_again() -> None:
    assert gather({"content": "\ud83d"}, {"content": "\ude00"}).text == "😀"
    assert mend("a\ud83d") == "a\ufffd"


def test_json_that_is_none_to_the_letter_is_kept() -> None:
    assert to_json({"a": "\ud83d", "b": 2**70}) == '{"a": "\\ud83d", "b": 1180591620717411303424}'
