"""A history in which nothing is to be prepared is taken as it is."""

from __future__ import annotations

from collections.abc import Iterator
from unittest import mock

from frostagent.models.openai import wire
from frostagent.models.openai.dialects import DIALECTS, PLAIN, Dialect
from frostagent.models.openai.history import Origin
from frostagent.models.openai.wire import write_request
from frostagent.types.messages import (
    AssistantMessage,
    Message,
    ModelRequest,
    Reasoning,
    SystemMessage,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from tests.cases import each_case

TALK = (SystemMessage("be brief"), UserMessage("你好"), AssistantMessage('"hi"\n'), UserMessage("and now?"))
THOUGHT = AssistantMessage("a", reasoning=Reasoning("hm", "h", "m"))


def any_message() -> Iterator[Message]:
    for text in ("hi", "你好", "", " ", "a\0b", "\ud800", "[EOF]\n"):
        yield from (SystemMessage(text), UserMessage(text), AssistantMessage(text), ToolMessage("1", "look", text))
        yield UserMessage(text, ("data:image/png;base64,A",))
        yield AssistantMessage(text, (ToolCall("1", "look", "{}"),))
        yield AssistantMessage(text, reasoning=Reasoning("hm", "h", "m"))


def write(messages: tuple[Message, ...], dialect: Dialect = PLAIN) -> bytes:
    request = ModelRequest(messages)
    return write_request(request, origin=Origin("h", "m"), dialect=dialect, stream_options=False)


def is_taken_as_it_is(messages: tuple[Message, ...]) -> bool:
    return wire.write_plain(messages) is not None


@each_case("place", range(len(TALK)))
def test_what_is_taken_as_it_is_is_what_comes_of_preparing_it_whoever_reads_it(place: int) -> None:
    count = 0
    for message in any_message():
        for history in ((*TALK[:place], message, *TALK[place + 1 :]), (*TALK[:place], message, *TALK[place:])):
            count += is_taken_as_it_is(history)
            for dialect in DIALECTS:
                written = write(history, dialect)
                with mock.patch.object(wire, "write_plain", return_value=None):
                    assert written == write(history, dialect)
    assert count


@each_case("history", [TALK, TALK[1:], TALK[3:], (*TALK[:1], *TALK[3:])])
def test_words_that_were_said_in_turn_are_taken_as_they_are(history: tuple[Message, ...]) -> None:
    assert is_taken_as_it_is(history)


@each_case(
    "history",
    [TALK[:3], TALK[:1], (), (*TALK, UserMessage("hm?")), (*TALK[1:], TALK[0]), (TALK[1], THOUGHT, TALK[3])],
)
def test_a_history_of_anything_else_is_prepared(history: tuple[Message, ...]) -> None:
    assert not is_taken_as_it_is(history)
