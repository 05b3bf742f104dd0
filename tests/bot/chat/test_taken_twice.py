"""After a restart: a question that was taken more than once, because it came again while the journal was away."""

from __future__ import annotations

from typing import Any

from msgspec import structs

from bot.core.events import MessageReceived, Sender
from bot.core.journal import OpenTurn, Recovery, SendState, Suspended, TurnClosed
from bot.core.run_ids import write_run
from frostagent.types.messages import AssistantMessage, ToolCall, Usage, UserMessage
from frostagent.types.runs import Asker, PendingCall, Stop, SuspendedRun
from tests.bot.chat.test_recovery import HELLO, asked, blind, restarted, send, turn
from tests.bot.hall import Hall
from tests.fakes import GROUP, until, words
from tests.fallback_lines import SORRY


def again(old: OpenTurn, turn_id: str, **more: Any) -> OpenTurn:
    return structs.replace(old, turn_id=turn_id, **more)


def ends(house: Hall) -> list[tuple[str, Stop]]:
    return [(entry.turn_id, entry.stop) for entry in house.store.entries if isinstance(entry, TurnClosed)]


async def test_several_waiting_rows_of_one_question_are_asked_once() -> None:
    question = asked()
    async with restarted(words("yes")) as (house, recoverer):
        await recoverer.recover(Recovery(waking=(question, question), seen=((question.identity, 0.0),) * 2))
        await house.take(HELLO, question)
        assert house.transport.texts == ["yes"]


async def test_questions_that_nothing_tells_apart_are_all_asked() -> None:
    nameless = structs.replace(asked(), message_id="0")
    async with restarted(words("one"), words("two")) as (house, recoverer):
        another = structs.replace(nameless, sender=Sender(5))
        await recoverer.recover(Recovery(waking=(nameless, another)))
        await house.take(HELLO)
        assert house.transport.texts == ["one", "two"]


async def test_a_question_that_waits_beside_its_own_turn_is_asked_once() -> None:
    question = asked()
    async with restarted(words("yes")) as (house, recoverer):
        await recoverer.recover(Recovery(turns=(turn(question),), waking=(question,)))
        await house.take(HELLO)
        assert house.transport.texts == ["yes"]


async def test_of_several_turns_of_one_question_the_last_is_tried_again() -> None:
    old = turn(asked())
    async with restarted(words("yes")) as (house, recoverer):
        await recoverer.recover(Recovery(turns=(old, again(old, "t5"))))
        await house.take(HELLO)
        assert house.transport.texts == ["yes"]
        assert ends(house)[:2] == [("t0", Stop.STOPPED), ("t5", Stop.INTERRUPTED)]
        (opened,) = house.store.of("turn_opened")
        assert getattr(opened, "retry_of", None) == "t5"


async def test_turns_of_questions_that_nothing_tells_apart_are_each_tried_again() -> None:
    old = turn(structs.replace(asked(), message_id="0"))
    async with restarted(words("one"), words("two")) as (house, recoverer):
        await recoverer.recover(Recovery(turns=(old, again(old, "t5"))))
        await house.take(HELLO)
        assert house.transport.texts == ["one", "two"]


async def test_what_one_turn_has_said_or_done_counts_for_all_of_its_question() -> None:
    old = turn(asked())
    other = again(old, "t5")
    for one, two in (
        (again(old, "t0", sends=(send(SendState.CONFIRMED, final=True),)), other),
        (old, again(other, "t5", sends=(send(SendState.UNKNOWN, final=True),))),
        (again(old, "t0", handled=True), other),
    ):
        async with restarted() as (house, recoverer):
            await recoverer.recover(Recovery(turns=(one, two)))
            await house.lanes.wait_idle()
            await house.outbox.wait_idle()
            assert ends(house) == [("t0", Stop.INTERRUPTED), ("t5", Stop.INTERRUPTED)]
            assert house.transport.sent == []
    for one, two in (
        (again(old, "t0", started=("pay",)), other),
        (old, again(other, "t5", retry_of="t9")),
        (again(old, "t0", sends=(send(SendState.CONFIRMED, final=False),)), other),
    ):
        async with restarted() as (house, recoverer):
            await recoverer.recover(Recovery(turns=(one, two)))
            await house.outbox.wait_idle()
            assert ends(house) == [("t0", Stop.INTERRUPTED), ("t5", Stop.INTERRUPTED)]
            assert house.transport.texts == [SORRY]


async def test_what_one_turn_will_say_counts_for_all_of_its_question() -> None:
    old = turn(asked())
    for final, said_ in ((True, ["an answer"]), (False, ["an answer", SORRY])):
        stored = send(SendState.QUEUED, final=final)
        async with restarted() as (house, recoverer):
            turns = again(old, "t0", sends=(stored,)), again(old, "t5")
            await recoverer.recover(Recovery(turns=turns, sends=(stored,)))
            await house.lanes.wait_idle()
            await house.outbox.wait_idle()
            assert house.transport.texts == said_


async def test_a_turn_whose_question_another_one_has_handled_is_only_closed() -> None:
    async with restarted() as (house, recoverer):
        await recoverer.recover(Recovery(turns=(again(turn(asked()), "t0", handled=True),)))
        await house.lanes.wait_idle()
        assert ends(house) == [("t0", Stop.INTERRUPTED)]
        assert house.transport.sent == []


async def test_all_turns_of_a_question_that_was_taken_back_leave_nothing_behind() -> None:
    old = turn(asked())
    async with restarted() as (house, recoverer):
        await recoverer.recover(Recovery(turns=(old, again(old, "t5", recalled=True))))
        assert ends(house) == [("t0", Stop.STOPPED), ("t5", Stop.STOPPED)]


def suspended(question: MessageReceived, turn_id: str) -> Suspended:
    call = ToolCall("c0", "wipe", "{}")
    state = SuspendedRun(
        run_id=turn_id,
        conversation=str(GROUP),
        asker=Asker("777", "小明"),
        messages=(),
        message=AssistantMessage("", (call,)),
        answers=(PendingCall(call, "wipe?", 1_700_000_500.0, ""),),
        usage=Usage(),
        steps=1,
    )
    return Suspended(turn_id, write_run(state, GROUP), state.expires, question, UserMessage("hi"))


async def test_of_several_runs_that_wait_for_one_question_the_last_goes_on_waiting() -> None:
    question = asked()
    async with restarted() as (house, recoverer):
        await recoverer.recover(
            Recovery(
                suspended=(suspended(question, "t1"), suspended(question, "t2")),
                turns=(turn(question),),
                waking=(question,),
            )
        )
        await house.take(HELLO)
        assert list(house.suspensions.waiting()) == ["t2"]
        assert sorted(ends(house)) == [("t0", Stop.INTERRUPTED), ("t1", Stop.STOPPED)]
        assert [getattr(entry, "turn_id", "") for entry in house.store.of("run_resumed")] == ["t1"]
        assert house.transport.sent == []


async def test_a_run_that_waits_is_closed_where_its_question_came_again_meanwhile() -> None:
    question = asked(ago=0)
    async with blind(words("one")) as (house, readable):
        await house.take(HELLO, question)
        house.store.recovery = Recovery(suspended=(suspended(question, "t9"),))
        readable.set()
        await until(lambda: house.store.of("run_resumed"))
        assert house.suspensions.waiting() == {}
        assert house.transport.texts == ["one"]


async def test_what_was_open_in_a_restored_backup_is_neither_asked_again_nor_sent() -> None:
    old, waiting, stored = turn(asked()), structs.replace(asked(), message_id="77"), send(SendState.QUEUED, final=True)
    async with restarted() as (house, recoverer):
        restored = house.clock.now() + 1
        await recoverer.recover(Recovery(turns=(old,), waking=(waiting,), sends=(stored,), restored=restored))
        await house.take(HELLO, old.question, waiting)
        assert house.transport.sent == []
        assert ends(house) == [("t0", Stop.INTERRUPTED)]
