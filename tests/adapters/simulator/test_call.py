"""The parameters of a call, and its answers."""

from __future__ import annotations

from typing import Any

import pytest

from adapters.simulator.call import Call, Done, Params, SentMessage
from adapters.simulator.wire import CallRefused, Json, mention, text
from tests.cases import each_case


@each_case(("value", "number"), [(5, 5), ("5", 5), ("-5", -5), (5.0, 5)])
def test_ids_are_numbers_or_strings(value: Any, number: int) -> None:
    assert Params({"id": value}).number("id") == number


@each_case("value", [None, "", "x", True, [], 5.5, "5.5"])
def test_anything_else_is_a_bad_parameter(value: Any) -> None:
    with pytest.raises(CallRefused) as caught:
        Params({"id": value}).number("id")
    assert (caught.value.retcode, caught.value.wording) == (1400, "参数 id 缺失或不正确")


def test_a_missing_number_may_have_a_default() -> None:
    assert Params({}).number("count", 20) == 20


@each_case(("value", "there"), [(5, True), ("5", True), (0, False), ("0", False), ("", False), (None, False)])
def test_nothing_and_zero_are_not_there(value: Any, there: bool) -> None:
    assert Params({"id": value}).has("id") is there


@each_case(("value", "flag"), [(True, True), ("true", True), (False, False), ("false", False), (None, False)])
def test_flags_may_be_words(value: Any, flag: bool) -> None:
    assert Params({"x": value}).flag("x") is flag


def test_the_words_of_a_sent_message_leave_out_the_rest() -> None:
    assert SentMessage(1, (mention(2), text(" a"), text("b"))).text == " ab"


@each_case(("frame", "retcode", "echo"), [({}, 1200, ""), ({}, 1400, None), ({"echo": [1]}, 1400, [1])])
def test_a_refusal_has_the_echo_or_what_stands_for_it(frame: Json, retcode: int, echo: Any) -> None:
    answer = Call("get_msg", Params({}), frame).refuse(CallRefused(retcode, "no"))
    assert (answer.frame["retcode"], answer.frame["wording"], answer.frame["echo"]) == (retcode, "no", echo)


def test_a_confirmation_has_what_was_done() -> None:
    done = Done({"message_id": 1})
    answer = Call("send_msg", Params({}), {"echo": 7}).confirm(done)
    assert (answer.frame["data"], answer.frame["echo"], answer.done) == ({"message_id": 1}, 7, done)
