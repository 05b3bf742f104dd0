"""Tool calls that come in pieces, rule by rule (numbers of vendors.md)."""

from __future__ import annotations

from typing import Any

import orjson

from frostagent.models.openai.answer import AnswerDraft, RawCall
from tests.cases import each_case
from tests.frostagent.openai.test_answer import call, gather

Calls = list[tuple[str, str, str | None]]


def calls(*deltas: dict[str, Any]) -> Calls:
    return [(item.id, item.name, item.arguments) for item in gather(*deltas).tool_calls]


def test_1_12_a_custom_call_is_a_call_without_a_name() -> None:
    raw = {"tool_calls": [{"id": "c", "type": "custom", "custom": {"name": "x", "input": "y"}}]}
    assert gather(raw).tool_calls == (RawCall("c", "", None),)


def test_a_call_grows_by_its_index() -> None:
    assert calls(
        call(index=0, id="a", name="f", arguments=""),
        call(index=0, arguments='{"x"'),
        call(index=0, arguments=":1}"),
    ) == [("a", "f", '{"x":1}')]


@each_case("blank", ["", None, " "])
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


@each_case(
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


@each_case(("first", "second"), [('{"x":1}', '{"x":2}'), ('{"x":1}', '{"x":true}'), ("{}", '{"x":1}')])
@each_case("index", [0, 1])
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
    draft = AnswerDraft()
    draft.add(call(index=0, id="a", name="f", arguments='{"x":['))
    piece = call(index=0, arguments='{"y":1},')
    for _ in range(100_000):
        draft.add(piece)
        draft.add(call(index=0, arguments="{}"))
    assert draft.pieces == 200_001


def test_2_14_calls_of_a_whole_message_are_never_merged() -> None:
    item = {"id": "x", "function": {"name": "f", "arguments": "{}"}}
    assert len(gather({"tool_calls": [item, item]}, whole=True).tool_calls) == 2


@each_case(("arguments", "text"), [({"a": 1}, '{"a":1}'), ([], "[]"), (None, None), ("", "")])
def test_3_4_arguments_come_as_text_or_as_json(arguments: object, text: str | None) -> None:
    assert calls(call(id="a", name="f", arguments=arguments)) == [("a", "f", text)]


def test_5_vendor_fields_stay_on_the_call() -> None:
    signature = {"google": {"thought_signature": "s"}}
    answer = gather(
        call(index=0, id="a", name="f", arguments="{}", type="function", extra_content=signature, note=None)
    )
    assert answer.tool_calls[0].extras == {"extra_content": signature}
