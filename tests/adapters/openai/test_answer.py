"""The accumulator, rule by rule (numbers of vendors.md)."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from adapters.openai.answer import MAX_SAID, MAX_THOUGHT, Answer, Draft, RawCall, mend, to_json
from adapters.openai.stream import AnswerReader
from bot.domain.errors import ModelRejected

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


DETAIL = {"type": "reasoning.text", "text": "x"}


@pytest.mark.parametrize(
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

    draft = Draft()
    draft.add(longer(piece))
    draft.add(longer(piece))
    assert not draft.is_too_long
    draft.add(piece)
    assert draft.is_too_long


def test_an_object_as_content_and_details_count_too() -> None:
    draft = Draft()
    draft.add({"content": {"a": "x" * MAX_SAID}})
    assert draft.is_too_long
    draft = Draft()
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


PIECES = ['{"x"', ": 1}"]


@pytest.mark.parametrize(
    "again",
    [
        [{"index": 0, "id": "a", "name": "f", "arguments": '{"x":1}'}],
        [{"index": 0, "id": "a", "name": "f", "arguments": {"x": 1}}],
        [{"index": 0, "id": "a", "arguments": '{"x":1}'}],
        [{"index": 0, "name": "f", "arguments": '{"x": 1}'}],
        [{"index": 0, "arguments": '{"x": 1}'}],
        [{"index": 1, "id": "a", "name": "f", "arguments": '{"x":1}'}],
        [{"index": 0, "id": "a", "name": "f", "arguments": PIECES[0]}, {"index": 0, "arguments": PIECES[1]}],
        [{"index": 1, "id": "a", "name": "f"}, *({"index": 1, "arguments": piece} for piece in PIECES)],
    ],
)
def test_2_14_a_call_that_was_sent_twice_is_one(again: list[dict[str, Any]]) -> None:
    sent = [{"index": 0, "id": "a", "name": "f"}, *({"index": 0, "arguments": piece} for piece in PIECES)]
    [(identity, name, arguments)] = calls(*(call(**fields) for fields in [*sent, *again]))
    assert (identity, name, orjson.loads(arguments or "")) == ("a", "f", {"x": 1})


def test_2_14_without_ids_the_index_tells_a_call_that_was_sent_twice() -> None:
    sent = [call(index=0, name="f", arguments=PIECES[0]), call(index=0, arguments=PIECES[1])]
    assert calls(*sent, *sent) == [("", "f", '{"x": 1}')]
    other = [call(index=1, name="f", arguments=PIECES[0]), call(index=1, arguments=PIECES[1])]
    assert len(calls(*sent, *other)) == 2
    assert len(calls(call(name="f", arguments="{}"), call(name="f", arguments="{}"))) == 2


@pytest.mark.parametrize(("first", "second"), [('{"x":1}', '{"x":2}'), ('{"x":1}', '{"x":true}'), ("{}", '{"x":1}')])
@pytest.mark.parametrize("index", [0, 1])
def test_2_14_different_calls_under_one_id_stay_two(first: str, second: str, index: int) -> None:
    """In pieces or whole, neither is lost and nothing is made of both."""
    whole = calls(
        call(index=0, id="a", name="f", arguments=first), call(index=index, id="a", name="f", arguments=second)
    )
    assert [arguments for *_, arguments in whole] == [first, second]
    pieces = [
        call(index=place, id="a" if at == 0 else None, name="f" if at == 0 else None, arguments=letter)
        for place, text in ((0, first), (index, second))
        for at, letter in enumerate(text)
    ]
    assert [arguments for *_, arguments in calls(*pieces)] == [first, second]


def test_pieces_that_look_whole_are_no_calls_sent_twice() -> None:
    pieces = ['{"x":', '{"y":', "{}", "}", "}"]
    assert calls(call(index=0, id="a", name="f"), *(call(index=0, arguments=piece) for piece in pieces)) == [
        ("a", "f", '{"x":{"y":{}}}')
    ]


def test_a_hundred_thousand_whole_pieces_hold_nobody_up() -> None:
    draft = Draft()
    draft.add(call(index=0, id="a", name="f", arguments='{"x":['))
    piece = call(index=0, arguments='{"y":1},')
    for _ in range(100_000):
        draft.add(piece)
        draft.add(call(index=0, arguments="{}"))
    assert draft.pieces == 200_001


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
    draft = Draft()
    draft.add(delta)
    assert draft.pieces == pieces
    assert not draft.is_empty
    draft.add(delta)
    assert draft.pieces == 2 * pieces


def test_2_18_a_character_in_two_halves_is_whole_again() -> None:
    assert gather({"content": "\ud83d"}, {"content": "\ude00"}).text == "😀"
    assert mend("a\ud83d") == "a\ufffd"


def test_json_that_is_none_to_the_letter_is_kept() -> None:
    assert to_json({"a": "\ud83d", "b": 2**70}) == '{"a": "\\ud83d", "b": 1180591620717411303424}'
