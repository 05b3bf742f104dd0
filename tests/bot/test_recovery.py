from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bot.domain.actions import SendMessage
from bot.domain.chat import AssistantMessage, Message, ToolCall, ToolMessage, UserMessage
from bot.domain.events import MessageReceived
from bot.domain.journal import OpenTurn, Recovery, SendChanged, SendState, StoredSend, TurnClosed, TurnOpened
from bot.domain.run import Stop
from bot.domain.segments import Text
from bot.domain.tool import tool
from bot.recovery import SORRY, Recoverer
from tests.bot.test_dispatcher import Hall
from tests.fakes import GROUP, ScriptedModel, Step, said, until, words

CALL = ToolCall("c0", "send_message", "{}")


@tool(may_have_happened=True)
async def pay() -> str:
    """Has effects of its own."""
    return "paid"


@asynccontextmanager
async def restarted(*steps: Step) -> AsyncIterator[tuple[Hall, Recoverer]]:
    with ScriptedModel(*steps) as model:
        house = Hall(model)
        house.toolset.register(pay)
        recoverer = Recoverer(
            store=house.store,
            dispatcher=house.dispatcher,
            turns=house.turns,
            outbox=house.outbox,
            toolset=house.toolset,
            clock=house.clock,
        )
        async with asyncio.timeout(5), house.outbox.open(), house.dispatcher.lanes.open():
            yield house, recoverer


def asked(text: str = "hi", *, ago: float = 10) -> MessageReceived:
    message = said(text)
    return dataclasses.replace(message, time=message.time - ago)


def turn(
    question: MessageReceived,
    *messages: Message,
    retry_of: str = "",
    started: tuple[str, ...] = (),
    sends: tuple[StoredSend, ...] = (),
) -> OpenTurn:
    return OpenTurn(
        turn_id="t0",
        question=question,
        user=UserMessage("hi"),
        at=question.time,
        retry_of=retry_of,
        messages=messages,
        started=started,
        sends=sends,
    )


def send(state: SendState, *, final: bool, ago: float = 5, whole: bool = True) -> StoredSend:
    return StoredSend(
        send_id="s0",
        turn_id="t0",
        action=SendMessage(GROUP, (Text("an answer"),)),
        final=final,
        at=1_700_000_000.0 - ago,
        state=state,
        whole=whole,
    )


async def test_an_interrupted_turn_is_closed_with_a_valid_round() -> None:
    old = turn(asked(ago=500), AssistantMessage("", (CALL,)), started=("send_message",))
    async with restarted() as (house, recoverer):
        await recoverer.recover(Recovery(turns=(old,)))
        (closed,) = house.store.of("turn_closed")
        assert isinstance(closed, TurnClosed)
        assert closed.stop is Stop.INTERRUPTED
        user, calls, result, end = closed.round
        assert (user, calls) == (UserMessage("hi"), AssistantMessage("", (CALL,)))
        assert isinstance(result, ToolMessage)
        assert "interrupted" in result.content
        assert isinstance(end, AssistantMessage)
        assert house.transport.sent == []


async def test_a_young_question_is_asked_again_once() -> None:
    async with restarted(words("yes")) as (house, recoverer):
        await recoverer.recover(Recovery(turns=(turn(asked()),)))
        await until(lambda: house.store.of("turn_closed")[1:])
        opened = house.store.of("turn_opened")[0]
        assert isinstance(opened, TurnOpened)
        assert opened.retry_of == "t0"
        assert house.transport.texts == ["yes"]


async def test_a_second_try_is_never_tried_again_nor_is_an_old_question() -> None:
    async with restarted() as (house, recoverer):
        await recoverer.recover(Recovery(turns=(turn(asked(), retry_of="t9"), turn(asked(ago=130)))))
        await house.dispatcher.lanes.wait_idle()
        assert house.transport.sent == []


async def test_a_question_that_may_have_been_answered_is_not_answered_again() -> None:
    for state in (SendState.SENDING, SendState.UNKNOWN, SendState.CONFIRMED):
        async with restarted() as (house, recoverer):
            stored = send(state, final=True)
            unfinished = (stored,) if state is not SendState.CONFIRMED else ()
            await recoverer.recover(Recovery(turns=(turn(asked(), sends=(stored,)),), sends=unfinished))
            await house.dispatcher.lanes.wait_idle()
            assert house.transport.sent == []


async def test_an_answer_that_never_reached_the_wire_is_sent_instead_of_asking_again() -> None:
    async with restarted() as (house, recoverer):
        stored = send(SendState.QUEUED, final=True)
        await recoverer.recover(Recovery(turns=(turn(asked(), sends=(stored,)),), sends=(stored,)))
        await until(lambda: house.transport.sent)
        assert house.transport.texts == ["an answer"]


async def test_who_heard_half_of_it_is_told_and_nothing_runs_twice() -> None:
    half = turn(asked(), started=("send_message",), sends=(send(SendState.CONFIRMED, final=False),))
    effects = turn(asked(), started=("pay",))
    for old in (half, effects):
        async with restarted() as (house, recoverer):
            await recoverer.recover(Recovery(turns=(old,)))
            await until(lambda: house.transport.sent)  # used in this round of the loop only
            assert house.transport.texts == [SORRY]


async def test_old_and_incomplete_sends_are_dropped_and_written_down() -> None:
    async with restarted() as (house, recoverer):
        old, torn = send(SendState.QUEUED, final=True, ago=200), send(SendState.QUEUED, final=True, whole=False)
        await recoverer.recover(Recovery(sends=(old, torn)))
        states = [entry.state for entry in house.store.entries if isinstance(entry, SendChanged)]
        assert states == [SendState.DROPPED, SendState.DROPPED]
        assert house.transport.sent == []


async def test_a_question_whose_turn_had_not_begun_is_answered_if_it_is_young() -> None:
    async with restarted(words("yes")) as (house, recoverer):
        await recoverer.recover(Recovery(waking=(asked("old", ago=130), asked("young"))))
        await until(lambda: house.transport.sent)
        await house.dispatcher.lanes.wait_idle()
        assert house.transport.texts == ["yes"]
        assert house.store.of("message_observed") == []


async def test_an_event_taken_before_the_restart_is_not_taken_again() -> None:
    message = said("hi")
    async with restarted() as (house, recoverer):
        await recoverer.recover(Recovery(seen=((message.identity, message.time),)))
        await house.take(message)
        assert house.transport.sent == []
