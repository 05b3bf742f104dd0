from __future__ import annotations

import pytest

from frostagent.sessions import InMemory
from frostagent.types.messages import AssistantMessage, Message, ToolCall, ToolMessage, UserMessage
from tests.cases import each_case


def a_round(text: str) -> tuple[Message, ...]:
    call = ToolCall("c", "look", "{}")
    return (
        UserMessage(text),
        AssistantMessage("", (call,)),
        ToolMessage("c", "look", "seen"),
        AssistantMessage("answer"),
    )


async def test_rounds_come_back_in_order_each_session_its_own() -> None:
    memory = InMemory()
    await memory.append("a", a_round("1"))
    await memory.append("b", a_round("other"))
    await memory.append("a", a_round("2"))
    assert await memory.load("a") == (*a_round("1"), *a_round("2"))
    assert await memory.load("nobody") == ()


async def test_the_oldest_rounds_are_forgotten_whole() -> None:
    memory = InMemory(rounds=2)
    for number in range(4):
        await memory.append("a", a_round(str(number)))
    assert await memory.load("a") == (*a_round("2"), *a_round("3"))


async def test_the_session_unused_for_longest_is_forgotten() -> None:
    memory = InMemory(sessions=2)
    for session in "ab":
        await memory.append(session, a_round(session))
    await memory.load("a")
    await memory.append("c", a_round("c"))
    assert await memory.load("b") == ()
    assert await memory.load("a") == a_round("a")


@each_case("messages", [(), (AssistantMessage("hi"),)])
async def test_a_round_begins_with_a_question(messages: tuple[Message, ...]) -> None:
    with pytest.raises(ValueError, match="begins with what somebody asked"):
        await InMemory().append("a", messages)
