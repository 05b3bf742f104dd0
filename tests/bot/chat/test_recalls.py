from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from bot.chat.tasks import Resume
from bot.chat.turn_journal import GIVEN_UP
from bot.core.conversation import Conversation
from bot.core.journal import MessageErased, MessageObserved, Remembered, Round, TurnClosed, TurnSteered
from frostagent.types.messages import AssistantMessage, Completion, ModelRequest, UserMessage
from frostagent.types.runs import Stop
from frostagent.types.suspension import Allow
from frostagent.types.tools import tool
from tests.bot.chat.test_recovery import HELLO, turn
from tests.bot.chat.test_stop_handler import hanging
from tests.bot.hall import Hall, hall, recalled
from tests.cases import each_case
from tests.e2e.test_suspended_turns import ask_first
from tests.fakes import GROUP, calls, said, words


async def test_a_recalled_question_is_not_answered() -> None:
    asked = asyncio.Event()

    async def think(request: ModelRequest) -> Completion:
        asked.set()
        await asyncio.Event().wait()
        return words("never")

    async with hall(think, words("for B")) as house:
        await house.dispatcher.handle(said("first", message_id="61"))
        await house.dispatcher.handle(said("second", user=5, message_id="62"))
        await asked.wait()
        await house.take(recalled("61"))
        assert house.transport.texts == ["for B"]


async def test_a_message_that_comes_after_its_recall_is_neither_answered_nor_kept() -> None:
    async with hall(words("to the other")) as house:
        await house.take(recalled("61"), recalled("62"))
        await house.take(said("a secret", message_id="61"), said("another", at=False, message_id="62"))
        await house.take(said("hi", message_id="63"))
        assert house.transport.texts == ["to the other"]
        observed = [one.message.message_id for one in house.store.entries if isinstance(one, MessageObserved)]
        assert observed == ["63"]
        assert "another" not in str(house.model.requests[-1].messages)


async def test_a_recall_stops_a_turn_that_goes_on() -> None:
    asked = asyncio.Event()

    async def think(request: ModelRequest) -> Completion:
        asked.set()
        await asyncio.Event().wait()
        return words("never")

    async with hall(calls(("ask_first", "")), think) as house:
        house.toolset.register(ask_first)
        await house.take(said("please", message_id="61"))
        ((turn_id, run),) = house.suspensions.waiting().items()
        resume = Resume(turn_id, {run.pending[0].call.id: Allow()}, house.suspensions.question(turn_id))
        assert house.lanes.put(GROUP, resume)
        await asked.wait()
        await house.take(recalled("61"))
        assert house.transport.sent == []
        assert house.asked[-1] == "A1 不用管了：提问已经撤回或结束，没有做。"
        (closed,) = house.store.of("turn_closed")
        assert isinstance(closed, TurnClosed)
        assert (closed.stop, closed.round, closed.error) == (Stop.STOPPED, (), GIVEN_UP)


async def test_a_recall_ends_a_turn_that_waits_and_whoever_was_asked_is_told() -> None:
    async with hall(calls(("ask_first", ""))) as house:
        house.toolset.register(ask_first)
        await house.take(said("please", message_id="61"))
        await house.take(recalled("61"))
        assert house.suspensions.waiting() == {}
        assert house.asked[-1] == "A1 不用管了：提问已经撤回或结束，没有做。"
        (closed,) = house.store.of("turn_closed")
        assert isinstance(closed, TurnClosed)
        assert (closed.stop, closed.round) == (Stop.STOPPED, ())


async def test_a_recall_closes_the_turn_that_a_question_in_the_lane_was_to_repeat() -> None:
    async with hall() as house:
        await house.dispatcher.handle(HELLO)
        house.lanes.hold(GROUP)
        house.late.ask_again(said("please", message_id="61"), retry=turn(said("please")))
        await house.take(recalled("61"))
        (closed,) = house.store.of("turn_closed")
        assert isinstance(closed, TurnClosed)
        assert (closed.turn_id, closed.stop) == ("t0", Stop.STOPPED)


async def test_what_a_waiting_turn_had_overheard_is_there_for_the_next_at_once() -> None:
    line = said("meet at seven", at=False, message_id="60")
    async with hall(calls(("ask_first", "")), words("at seven")) as house:
        house.toolset.register(ask_first)
        await house.take(line)
        await house.take(said("please", message_id="61"))
        house.store.remembered[GROUP] = Remembered(overheard=(line,))
        await house.take(recalled("61"))
        await house.take(said("when?", message_id="62"))
        assert "meet at seven" in house.model.requests[-1].messages[-1].text


async def test_what_a_turn_had_overheard_that_was_to_be_repeated_is_there_for_the_next_at_once() -> None:
    line = said("meet at seven", at=False, message_id="60")
    async with hall(words("yes"), words("at seven")) as house:
        await house.take(HELLO)
        await house.take(said("hi", message_id="59"))
        house.lanes.hold(GROUP)
        house.late.ask_again(said("please", message_id="61"), retry=turn(said("please")))
        house.store.remembered[GROUP] = Remembered(overheard=(line,))
        await house.dispatcher.handle(recalled("61"))
        house.lanes.release(GROUP)
        await house.take(said("when?", message_id="62"))
        assert "meet at seven" in house.model.requests[-1].messages[-1].text


async def test_what_was_said_into_a_run_leaves_with_its_recalled_question() -> None:
    async with hanging() as house:
        await house.dispatcher.handle(said("and this", message_id="2"))
        await house.dispatcher.handle(said("quickly", at=False, message_id="3"))
        await house.take(recalled("q1"))
        assert len(house.model.requests) == 1
        assert house.history.take_overheard(GROUP) == ()
        steered = [one.message.message_id for one in house.store.entries if isinstance(one, TurnSteered)]
        assert steered == ["2", "3"]


@each_case(
    ("gone", "held", "is_kept"), [("m1", True, False), ("m1", False, True), ("q1", True, True), ("q1", False, True)]
)
async def test_a_summary_is_told_no_more_where_what_is_recalled_may_be_in_it(
    gone: str, held: bool, is_kept: bool
) -> None:
    @tool
    async def look_up() -> str:
        """Somebody takes back what he said long ago, or just now."""
        await house.dispatcher.handle(recalled(gone))
        return "found"

    async with hall(words("one"), calls(("look_up", "")), words("two")) as house:
        house.toolset.register(look_up)
        with summed_up(house, "a secret\n[提问] 的话", held=held):
            await house.take(said("first", message_id="q1"))
            await house.take(said("second", message_id="q2"))
        *_, before, after = (request.messages for request in house.model.requests)
        assert "a secret" in str(before)
        assert next(message.text for message in after if isinstance(message, UserMessage)) == (
            "[此前对话摘要]\n  a secret\n  [提问] 的话\n[提问]\n小明#1: 早" if is_kept else "[提问]\n小明#1: 早"
        )
        assert "second" in str(after)


async def test_a_summary_is_told_no_more_where_the_store_cannot_say_what_is_in_it() -> None:
    @tool
    async def look_up() -> str:
        """Somebody takes back what he said long ago."""
        house.store.trouble = True
        await house.dispatcher.handle(recalled("m1"))
        return "found"

    async with hall(calls(("look_up", "")), words("two")) as house:
        house.toolset.register(look_up)
        with summed_up(house, "a secret", held=False):
            await house.take(said("first", message_id="q1"))
        before, after = (str(request.messages) for request in house.model.requests)
        assert ("a secret" in before, "a secret" in after) == (True, False)


@each_case("held", [True, False])
async def test_what_was_doubted_for_a_summary_is_no_answer_where_that_is_given_up(held: bool) -> None:
    async def think(_: ModelRequest) -> Completion:
        await house.dispatcher.handle(recalled("m1"))
        return words("密码是八八六四二")

    async with hall(think, *[words("")] * (1 + held)) as house:
        with summed_up(house, "阿澈#1: 密码是八八六四二", held=held):
            await house.take(said("多少来着？", message_id="q1"))
        assert ("密码是八八六四二" in house.transport.texts) is not held


async def test_the_store_is_asked_once_for_a_recall_and_only_where_a_summary_is_told() -> None:
    @tool
    async def look_up() -> str:
        """Somebody takes back what no run has read."""
        await house.dispatcher.handle(recalled("m1"))
        return "found"

    for summary, times in (("a secret", 1), ("", 0)):
        async with hall(calls(("look_up", "")), calls(("look_up", "{}")), words("two")) as house:
            house.toolset.register(look_up)
            with summed_up(house, summary, held=False) as asked:
                await house.take(said("first", message_id="q1"))
            assert len(asked) == 1 + times, summary


@contextmanager
def summed_up(house: Hall, summary: str, *, held: bool) -> Iterator[list[Conversation]]:
    """The store has a summary, and gives it up with what is recalled where it `held` that; each time it is asked."""
    asked: list[Conversation] = []

    async def remember(where: Conversation) -> Remembered | None:
        asked.append(where)
        durable = house.store.entries[: house.store.durable]
        is_gone = held and any(isinstance(entry, MessageErased) for entry in durable)
        return None if house.store.trouble else Remembered(ROUNDS, summary="" if is_gone else summary)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(house.store, "remember", remember)
        yield asked


ROUNDS = (Round("t0", (UserMessage("[提问]\n小明#1: 早", sources=("m0",)), AssistantMessage("早"))),)
