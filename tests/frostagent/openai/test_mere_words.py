from __future__ import annotations

from collections.abc import Iterator

from frostagent.models.openai.dialects import DIALECTS
from frostagent.models.openai.history import Origin, prepare_history, written
from frostagent.types.messages import (
    AssistantMessage,
    Message,
    Reasoning,
    SystemMessage,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from tests.cases import each_case

ROLES: dict[type, str] = {SystemMessage: "system", UserMessage: "user", AssistantMessage: "assistant"}
TALK = (SystemMessage("be brief"), UserMessage("你好"), AssistantMessage('"hi"\n'), UserMessage("and now?"))


def any_message() -> Iterator[Message]:
    for text in ("hi", "你好", "", " ", "a\0b", "\ud800", "[EOF]\n"):
        yield from (SystemMessage(text), UserMessage(text), AssistantMessage(text), ToolMessage("1", "look", text))
        yield UserMessage(text, ("data:image/png;base64,A",))
        yield AssistantMessage(text, (ToolCall("1", "look", "{}"),))
        yield AssistantMessage(text, reasoning=Reasoning("hm", "h", "m"))


@each_case("place", range(len(TALK)))
def test_what_is_written_at_once_is_what_comes_of_preparing_it_whoever_reads_it(place: int) -> None:
    count = 0
    for message in any_message():
        for history in ([*TALK[:place], message, *TALK[place + 1 :]], [*TALK[:place], message, *TALK[place:]]):
            if (at_once := written(history)) is None:
                continue
            count += 1
            for dialect in DIALECTS:
                prepared = prepare_history(history, origin=Origin("h", "m"), dialect=dialect)
                told = [one for one in prepared if not isinstance(one, ToolMessage)]
                bodies = [{"role": ROLES[type(one)], "content": one.text} for one in told]
                assert at_once == bodies
                assert [type(one)(one.text) for one in told] == prepared
    assert count


@each_case("history", [TALK, TALK[1:], TALK[3:], (*TALK[:1], *TALK[3:])])
def test_words_that_were_said_in_turn_are_written_at_once(history: tuple[Message, ...]) -> None:
    assert written(history) is not None


def test_a_history_of_anything_else_is_prepared() -> None:
    thought = AssistantMessage("a", reasoning=Reasoning("hm", "h", "m"))
    others = (
        *(TALK[:3], TALK[:1], (), (*TALK, UserMessage("hm?")), (*TALK[1:], TALK[0])),
        (UserMessage("q"), thought, UserMessage("hm?")),
    )
    assert [written(history) for history in others] == [None] * len(others)
