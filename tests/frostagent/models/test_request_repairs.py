from __future__ import annotations

from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from frostagent.models.request_repairs import (
    CALL_AGAIN,
    PICTURE_LEFT_OUT,
    calls_as_words,
    earlier_rounds,
    has_pictures,
    latest_round,
    question_in_words,
    request_beginnings,
    with_call_error,
    without_messages,
    without_pictures,
    without_vendor_fields,
)
from frostagent.types.messages import (
    AssistantMessage,
    Message,
    ModelRequest,
    Reasoning,
    SystemMessage,
    ToolCall,
    ToolMessage,
    ToolSpec,
    UserMessage,
)
from tests.cases import each_case

PICTURE = "data:image/png;base64,AAAA"
SYSTEM = SystemMessage("be kind")
TOOLS = (ToolSpec("f", "Does it.", {"type": "object", "properties": {}}),)
CALLING = AssistantMessage("", (ToolCall("c0", "f", "{}"),))
RESULT = ToolMessage("c0", "f", "done")


def ask(*messages: Message) -> ModelRequest:
    return ModelRequest(messages, TOOLS)


def test_pictures_become_words_that_say_they_were_there() -> None:
    request = ask(
        SYSTEM, UserMessage("look", images=(PICTURE, PICTURE)), CALLING, ToolMessage("c0", "f", "", images=(PICTURE,))
    )
    assert has_pictures(request)
    changed = without_pictures(request)
    assert changed == ask(
        SYSTEM,
        UserMessage(f"look\n{PICTURE_LEFT_OUT}\n{PICTURE_LEFT_OUT}"),
        CALLING,
        ToolMessage("c0", "f", PICTURE_LEFT_OUT),
    )
    assert changed is not None
    assert not has_pictures(changed)
    assert without_pictures(changed) is None


def test_what_belongs_to_one_vendor_goes() -> None:
    call = ToolCall("c0", "f", "{}", extras='{"signature": "x"}')
    request = ask(UserMessage("q"), AssistantMessage("", (call,), Reasoning("hm", "a.test", "m")), RESULT)
    changed = without_vendor_fields(request)
    assert changed == ask(UserMessage("q"), CALLING, RESULT)
    assert changed is not None
    assert without_vendor_fields(changed) is None


def test_a_model_that_called_wrongly_is_told_so_at_the_end() -> None:
    assert with_call_error(ask(UserMessage("q"))).messages == (UserMessage(f"q\n\n{CALL_AGAIN}"),)
    assert with_call_error(ask(UserMessage("", (PICTURE,)))).messages == (UserMessage(CALL_AGAIN, (PICTURE,)),)
    assert with_call_error(ask(UserMessage("q"), CALLING, RESULT)).messages[2:] == (RESULT, UserMessage(CALL_AGAIN))


ONCE = "You called the tool f with {}, and its result was:\n| done"


@each_case(
    ("said", "told"),
    [
        ((UserMessage("q"), CALLING, RESULT), (UserMessage(f"q\n\n{ONCE}"),)),
        (
            (UserMessage("q"), replace(CALLING, text="hm"), RESULT, AssistantMessage("a"), UserMessage("p")),
            (UserMessage("q"), AssistantMessage("hm"), UserMessage(ONCE), AssistantMessage("a"), UserMessage("p")),
        ),
        (
            (UserMessage("q"), CALLING, replace(RESULT, content="小明(1): yes\n\nno", images=(PICTURE,))),
            (UserMessage("q\n\n" + ONCE.replace("| done", "| 小明(1): yes\n| \n| no"), (PICTURE,)),),
        ),
        (
            (UserMessage("q"), replace(CALLING, tool_calls=(ToolCall("c1", "g", '{"a":\n1}'), *CALLING.tool_calls))),
            (
                UserMessage(
                    'q\n\nYou called the tool g with {"a": 1}; its result was lost.\n'
                    "You called the tool f with {}; its result was lost."
                ),
            ),
        ),
        ((UserMessage("q"), RESULT), (UserMessage(f"q\n\n{ONCE}"),)),
        (
            (
                SYSTEM,
                UserMessage("q"),
                UserMessage("p"),
                AssistantMessage("a"),
                AssistantMessage("b"),
                UserMessage("n"),
            ),
            (SYSTEM, UserMessage("q\n\np"), AssistantMessage("a\n\nb"), UserMessage("n")),
        ),
        (
            (UserMessage("q"), AssistantMessage("", (ToolCall("c9", "g", ""),)), UserMessage("n")),
            (UserMessage("q\n\nYou called the tool g with {}; its result was lost.\n\nn"),),
        ),
    ],
)
def test_in_words_people_and_the_model_speak_in_turn_and_calls_are_told(
    said: tuple[Message, ...], told: tuple[Message, ...]
) -> None:
    changed = calls_as_words(ask(*said))
    assert changed == ask(*told)
    assert changed is not None
    assert calls_as_words(changed) is None


@given(
    st.lists(
        st.sampled_from(
            (
                UserMessage("q"),
                UserMessage("", (PICTURE,)),
                AssistantMessage("a"),
                CALLING,
                replace(CALLING, text="hm", tool_calls=(*CALLING.tool_calls, ToolCall("c1", "g", "x"))),
                RESULT,
                ToolMessage("c1", "g", "1\r2\u20283"),
            )
        )
    )
)
def test_in_words_whatever_was_said_alternates_and_no_result_is_lost(said: list[Message]) -> None:
    changed = (calls_as_words(ask(SYSTEM, *said)) or ask(SYSTEM, *said)).messages[1:]
    assert not any(isinstance(message, ToolMessage) for message in changed)
    assert all(type(one) is not type(other) for one, other in pairwise(changed))
    assert not any(message.tool_calls for message in changed if isinstance(message, AssistantMessage))
    told = "\n".join(message.text for message in changed)
    assert told.count("| done") == said.count(RESULT)
    assert told.count("| 1\n| 2\n| 3") == sum(isinstance(one, ToolMessage) and one.name == "g" for one in said)
    assert calls_as_words(ask(SYSTEM, *changed)) is None


def test_the_question_alone_has_neither_pictures_nor_calls() -> None:
    question = UserMessage("three", (PICTURE,))
    request = ask(SYSTEM, UserMessage("one"), AssistantMessage("two"), question, CALLING, RESULT)
    alone = ask(SYSTEM, UserMessage(f"three\n{PICTURE_LEFT_OUT}\n\n{ONCE}"))
    assert question_in_words(request) == alone
    assert question_in_words(alone) is None


def test_what_is_asked_about_pictures_is_never_asked_without() -> None:
    request = replace(ask(UserMessage("what is it?", (PICTURE,))), about_pictures=True)
    assert without_pictures(request) is None
    assert question_in_words(request) is None


def test_only_those_pictures_go_that_are_refused() -> None:
    other = PICTURE.replace("A", "B")
    request = ask(UserMessage("look", (PICTURE, other)))
    assert without_pictures(request, other.__eq__) == ask(UserMessage(f"look\n{PICTURE_LEFT_OUT}", (PICTURE,)))
    assert without_pictures(request, "none".__eq__) is None


EARLIER: tuple[Message, ...] = (UserMessage("one"), AssistantMessage("two"))


@each_case(
    "latest",
    [
        (UserMessage("three"),),
        (UserMessage("three"), CALLING, RESULT),
        (UserMessage("three"), AssistantMessage("hm")),
        (UserMessage("three"), CALLING, RESULT, UserMessage("You have no tool calls left.")),
    ],
)
def test_the_latest_question_stays_with_what_followed(latest: tuple[Any, ...]) -> None:
    request = ask(SYSTEM, *EARLIER, *latest)
    assert earlier_rounds(request) == EARLIER
    assert latest_round(request) == ask(SYSTEM, *latest)
    assert latest_round(ask(SYSTEM, *latest)) is None
    assert latest_round(ask(*EARLIER, *latest)) == ask(*latest)


def test_a_round_that_ended_silently_stays_too_since_its_question_may_be_the_one() -> None:
    latest = (UserMessage("three"), CALLING, RESULT, UserMessage("four"))
    assert latest_round(ask(SYSTEM, *EARLIER, *latest)) == ask(SYSTEM, *latest)


def test_where_nobody_asks_nothing_is_dropped() -> None:
    assert latest_round(ask(SYSTEM)) is None
    assert latest_round(ask(SYSTEM, AssistantMessage("a"))) is None


def test_beginnings_end_before_a_question() -> None:
    request = ask(SYSTEM, *EARLIER, UserMessage("three"))
    assert list(request_beginnings(request, (1, 2, 3, 9))) == [EARLIER]
    assert without_messages(request, EARLIER) == ask(SYSTEM, UserMessage("three"))
