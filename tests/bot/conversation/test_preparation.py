from __future__ import annotations

import dataclasses

import pytest
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
from bot.domain.traits import Audience
from bot.prompt.compose import Question, user_message
from tests.bot.conversation.test_recovery import turn
from tests.bot.conversation.test_turn import OWNER, living, speak
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


async def test_a_retry_whose_words_may_be_others_too_has_nobodys_authority() -> None:
    question = said("wipe it", user=OWNER)
    alone = replace(turn(question), user=user_message(Question(question)))
    crowded = replace(alone, user=UserMessage(f"[群聊记录]\n小红(5): hi\n{alone.user.text}"))
    async with living() as house:
        begin = house.answering.preparation.begin
        askers = [(await begin(question, retry)).run.asker for retry in (alone, crowded)]
    assert [asker.authority for asker in askers] == [Audience.OWNER, Audience.EVERYONE]


@pytest.mark.parametrize("before", [Audience.OWNER, Audience.EVERYONE])
@pytest.mark.parametrize("meanwhile", ["主人(999): hi", "小红(5): hi"])
async def test_a_turn_that_goes_on_has_no_more_authority_than_it_had_or_is_left(
    before: Audience, meanwhile: str
) -> None:
    asker = Asker(OWNER, is_owner=True, authority=Audience.GROUP_ADMIN, overheard=before)
    waiting = WaitingTurn(said("hi", user=OWNER), UserMessage("hi"), suspended(asker))
    async with living() as house:
        house.history.add_round(GROUP, "t0", UserMessage(f"[提问]\n{meanwhile}"), [])
        asker = house.answering.preparation.go_on("t1", waiting).run.asker
    left = Audience.EVERYONE if "小红" in meanwhile else before
    assert (asker.authority, asker.overheard) == (Audience.GROUP_ADMIN, left)


def suspended(asker: Asker) -> SuspendedRun:
    return SuspendedRun(
        run_id="t1",
        conversation=GROUP,
        asker=asker,
        messages=(),
        message=AssistantMessage(),
        answers=(),
        usage=Usage(30, 12),
        steps=2,
    )


def test_what_a_waiting_turn_has_spent_is_what_was_written_down_or_can_be_told_from_it() -> None:
    run = suspended(Asker(777))
    waiting = WaitingTurn(said("hi"), UserMessage("hi"), run, ("one", ""))
    assert spent_by(waiting) == Spent(2, 42, 2)
    spent = Spent(7, 99.0, 4)
    assert spent_by(dataclasses.replace(waiting, run=replace(run, spent=spent))) == spent
