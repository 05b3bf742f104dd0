from __future__ import annotations

import dataclasses

from msgspec.structs import replace

from bot.conversation.preparation import spent_by
from bot.conversation.suspensions import WaitingTurn
from bot.domain.chat import (
    AssistantMessage,
    Usage,
    UserMessage,
)
from bot.domain.journal import Remembered, Round
from bot.domain.run import Asker, Spent, SuspendedRun
from tests.bot.conversation.test_turn import living, speak
from tests.fakes import (
    GROUP,
    calls,
    said,
    words,
)


async def test_the_next_prompt_begins_with_the_same_bytes_and_has_what_was_said() -> None:
    async with living(calls(speak("one")), words("two"), words("three")) as house:
        await house.turns.take(said("first"))
        await house.turns.take(said("second"))
    before, after = house.model.requests[1].messages, house.model.requests[2].messages
    assert after[: len(before)] == before
    assert [m.text for m in after if isinstance(m, AssistantMessage)] == ["", "two"]


async def test_what_was_overheard_stands_before_the_question_once() -> None:
    async with living(words("a"), words("b")) as house:
        house.history.overhear(said("I like tea", user=5, name="小红", at=False))
        await house.turns.take(said("what does she like?", message_id="8"))
        await house.turns.take(said("sure?", message_id="9"))
    user = house.model.requests[0].messages[-1]
    assert user == UserMessage("[群聊记录]\n小红(5): I like tea\n[提问] 消息号 8\n小明(777): what does she like?")
    assert house.model.requests[1].messages[-1] == UserMessage("[提问] 消息号 9\n小明(777): sure?")


async def test_the_prompt_goes_on_from_what_the_store_remembers() -> None:
    rounds = (Round("t0", (UserMessage("earlier"), AssistantMessage("indeed"))),)
    overheard = (said("I like tea", user=5, name="小红", at=False),)
    async with living(words("tea")) as house:
        house.store.remembered[GROUP] = Remembered(rounds, overheard)
        await house.turns.take(said("what does she like?", message_id="8"))
        _, *rest = house.model.requests[0].messages
        assert rest == [
            UserMessage("earlier"),
            AssistantMessage("indeed"),
            UserMessage("[群聊记录]\n小红(5): I like tea\n[提问] 消息号 8\n小明(777): what does she like?"),
        ]


def test_what_a_waiting_turn_has_spent_is_what_was_written_down_or_can_be_told_from_it() -> None:
    run = SuspendedRun(
        run_id="t1",
        conversation=GROUP,
        asker=Asker(777),
        messages=(),
        message=AssistantMessage(),
        answers=(),
        usage=Usage(30, 12),
        steps=2,
    )
    waiting = WaitingTurn(said("hi"), UserMessage("hi"), run, ("one", ""))
    assert spent_by(waiting) == Spent(2, 42, 2)
    spent = Spent(7, 99.0, 4)
    assert spent_by(dataclasses.replace(waiting, run=replace(run, spent=spent))) == spent
