from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from bot.core.codec import read, write
from bot.core.conversation import Conversation
from frostagent.types.messages import AssistantMessage, ToolCall, ToolMessage, Usage
from frostagent.types.runs import Asker, PendingCall, RunEvent, RunPaused, SuspendedRun
from frostagent.types.suspension import BadSuspension, Decision, Suspend, digest_call, verify
from tests.cases import each_case

st.register_type_strategy(float, st.floats(allow_nan=False, allow_infinity=False))

GROUP = Conversation(10001, "group", 4242)
ASKER = Asker("777", "小明", "admin")
DONE = ToolCall("a", "look", "{}")
MAIL = ToolCall("b", "mail", '{"to": "x", "n": 1}')
DROP = ToolCall("c", "drop", '{"table": "all"}')


def pending(call: ToolCall, expires: float = 1e9) -> PendingCall:
    return PendingCall(call, "Really?", expires, digest_call(call, run_id="t1", asker="777"))


RUN = SuspendedRun(
    run_id="t1",
    conversation=str(GROUP),
    asker=ASKER,
    messages=(),
    message=AssistantMessage("", (DONE, MAIL, DROP)),
    answers=(ToolMessage("a", "look", "seen"), pending(MAIL, 2e9), pending(DROP)),
    usage=Usage(10, 5),
    steps=1,
)


def check(suspended: SuspendedRun = RUN, **others: Any) -> None:
    given: dict[str, Any] = {"run_id": "t1", "conversation": str(GROUP), "asker": "777", "decided": ("b", "c")}
    verify(suspended, **(given | others))


def test_an_unchanged_run_may_go_on_with_any_of_its_calls_decided() -> None:
    for decided in [(), ("b",), ("c",), ("b", "c")]:
        check(decided=decided)


def test_arguments_that_a_hook_changed_are_bound_to_the_wait_as_well() -> None:
    changed = '{"to": "y"}'
    bound = replace(
        pending(MAIL),
        arguments=changed,
        digest=digest_call(MAIL, run_id="t1", asker="777", arguments=changed),
    )
    check(replace(RUN, answers=(RUN.answers[0], bound, pending(DROP))))
    for wrong in (replace(bound, arguments='{"to": "eve"}'), replace(bound, arguments="")):
        with pytest.raises(BadSuspension):
            check(replace(RUN, answers=(RUN.answers[0], wrong, pending(DROP))))


def test_a_wait_ends_with_its_first_call() -> None:
    assert RUN.pending == (RUN.answers[1], RUN.answers[2])
    assert RUN.expires == 1e9


@each_case(
    "others",
    [
        {"run_id": "t2"},
        {"conversation": Conversation(10001, "private", 4242)},
        {"asker": 778},
        {"decided": ("a",)},
        {"decided": ("b", "nobody")},
        {"decided": ("",)},
    ],
)
def test_another_run_place_person_or_call_is_refused(others: dict[str, Any]) -> None:
    with pytest.raises(BadSuspension):
        check(**others)


MORE_MAIL = replace(MAIL, arguments='{"to": "everybody", "n": 1}')
TAMPERED: dict[str, SuspendedRun] = {
    "arguments in the message": replace(RUN, message=replace(RUN.message, tool_calls=(DONE, MORE_MAIL, DROP))),
    "arguments in the wait": replace(
        RUN, answers=(RUN.answers[0], replace(pending(MAIL), call=MORE_MAIL), pending(DROP))
    ),
    "arguments in both": replace(
        RUN,
        message=replace(RUN.message, tool_calls=(DONE, MORE_MAIL, DROP)),
        answers=(RUN.answers[0], replace(pending(MAIL), call=MORE_MAIL), pending(DROP)),
    ),
    "name in both": replace(
        RUN,
        message=replace(RUN.message, tool_calls=(DONE, MAIL, replace(DROP, name="look"))),
        answers=(*RUN.answers[:2], replace(pending(DROP), call=replace(DROP, name="look"))),
    ),
    "a digest": replace(RUN, answers=(*RUN.answers[:2], replace(pending(DROP), digest="0" * 64))),
    "an answer is missing": replace(RUN, answers=RUN.answers[:2]),
    "an answer too many": replace(RUN, answers=(*RUN.answers, pending(DROP))),
    "another order": replace(RUN, answers=(RUN.answers[0], pending(DROP), pending(MAIL))),
    "a result of another call": replace(RUN, answers=(ToolMessage("b", "mail", "sent"), *RUN.answers[1:])),
    "no calls": replace(RUN, message=AssistantMessage("hi"), answers=()),
    "nothing waits": replace(RUN, message=AssistantMessage("", (DONE,)), answers=RUN.answers[:1]),
    "two calls of one id": replace(
        RUN, message=AssistantMessage("", (MAIL, MAIL)), answers=(pending(MAIL), pending(MAIL))
    ),
}


@each_case("what", TAMPERED)
def test_a_changed_run_is_refused_whatever_was_changed(what: str) -> None:
    with pytest.raises(BadSuspension):
        check(TAMPERED[what], decided=())


def test_a_digest_binds_the_call_the_run_and_the_asker_but_not_the_layout_of_the_arguments() -> None:
    digest = digest_call(MAIL, run_id="t1", asker="777")
    assert digest == digest_call(replace(MAIL, arguments='{"n":1,"to":"\\u0078"}'), run_id="t1", asker="777")
    others = [
        digest_call(MAIL, run_id="t2", asker="777"),
        digest_call(MAIL, run_id="t1", asker="778"),
        digest_call(replace(MAIL, id="z"), run_id="t1", asker="777"),
        digest_call(replace(MAIL, name="drop"), run_id="t1", asker="777"),
        digest_call(replace(MAIL, arguments='{"n":1,"to":"y"}'), run_id="t1", asker="777"),
    ]
    assert len({digest, *others}) == 6


@given(st.one_of(st.text(), st.sampled_from(["[" * 100_000, '"\\ud800"', "NaN", "1e999", "9" * 5000])))
def test_any_text_has_a_digest(arguments: str) -> None:
    call = ToolCall("c", "t", arguments)
    assert digest_call(call, run_id="t1", asker="1") == digest_call(call, run_id="t1", asker="1")


@each_case("seconds", [0, -1, float("inf"), float("nan")])
def test_a_wait_without_an_end_cannot_be_asked_for(seconds: float) -> None:
    with pytest.raises(ValueError, match="a wait must end"):
        Suspend("Really?", seconds=seconds)


@pytest.mark.parametrize("kind", [SuspendedRun, Decision], ids=["run", "decision"])
@given(data=st.data())
def test_it_is_read_back_as_it_was_written(kind: Any, data: st.DataObject) -> None:
    value = data.draw(st.from_type(kind))
    text = write(value)
    assert read(kind, text) == value
    assert write(read(kind, text)) == text


def test_the_event_of_a_wait_can_be_written_too() -> None:
    event = RunPaused(run_id="t1", suspended=RUN, seconds=0.5)
    assert read(RunEvent, write(event)) == event


def test_a_state_of_an_older_version_is_read() -> None:
    told = json.loads(write(RUN))
    for answer in told["answers"]:
        answer.pop("since", None)
        answer.pop("code", None)
    assert read(SuspendedRun, json.dumps(told)) == RUN
