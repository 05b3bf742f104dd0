from __future__ import annotations

import asyncio

from bot.conversation.tasks import Resume
from bot.domain.chat import Completion, ModelRequest, UserMessage
from bot.domain.events import (
    Connected,
)
from bot.domain.journal import MessageObserved, OpenTurn
from bot.domain.segments import Quote, Text
from bot.policy.apologies import BUSY
from tests.bot.hall import hall
from tests.fakes import BOT, GROUP, PRIVATE, said, words


async def test_a_flood_beyond_the_lane_is_observed_not_answered_and_its_askers_told_once() -> None:
    gate = asyncio.Event()

    async def think(request: ModelRequest) -> Completion:
        await gate.wait()
        return words("ok")

    async with hall(think, *[words("ok")] * 50) as house:
        await house.dispatcher.handle(said("0"))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        for number in range(60):
            await house.dispatcher.handle(said(str(number + 1)))
        gate.set()
        await house.lanes.wait_idle()
        assert len(house.transport.sent) == 52
        told = [action for action in house.transport.sent if Text(BUSY) in action.segments]
        observed = [entry.message for entry in house.store.entries if isinstance(entry, MessageObserved)]
        assert [action.segments[0] for action in told] == [Quote(observed[51].message_id)]  # the first without a place
        assert house.overflow.count == 10
        assert len(house.store.of("message_overheard")) == 10


async def test_while_stopping_a_run_ends_and_every_other_question_is_left_in_the_journal() -> None:
    asked, gate = asyncio.Event(), asyncio.Event()

    async def think(request: ModelRequest) -> Completion:
        asked.set()
        await gate.wait()
        return words("hello")

    async with hall(think) as house, asyncio.TaskGroup() as group:
        dispatcher = house.dispatcher
        await dispatcher.handle(said("first", message_id="1"))
        await asked.wait()
        await dispatcher.handle(said("waiting", message_id="2"))
        stopping = group.create_task(house.lanes.finish(within=5))
        await asyncio.sleep(0)
        assert house.lanes.finishing
        await dispatcher.handle(said("late", message_id="3", where=PRIVATE))
        house.late.ask_again(said("put off", message_id="4"))
        await dispatcher.handle(Connected(self_id=BOT, time=0.0))
        assert not house.lanes.put(GROUP, Resume("t9", {}, None))
        gate.set()
        await stopping
        assert house.transport.texts == ["hello"]
        assert len(house.store.of("message_observed")) == 3
        assert house.store.of("message_overheard") == []
        assert len(house.store.of("turn_opened")) == len(house.store.of("turn_closed")) == 1


async def test_an_interrupted_question_that_finds_no_place_is_told_so() -> None:
    gate = asyncio.Event()

    async def think(request: ModelRequest) -> Completion:
        await gate.wait()
        return words("ok")

    old = said("asked before", message_id="77")
    turn = OpenTurn(
        turn_id="t0",
        question=old,
        user=UserMessage("hi"),
        at=0.0,
        retry_of="",
        messages=(),
        started=(),
        sends=(),
    )
    async with hall(think, *[words("ok")] * 50) as house:
        for number in range(51):
            await house.dispatcher.handle(said(str(number)))
            await asyncio.sleep(0)
        await house.dispatcher.handle(Connected(self_id=BOT, time=0.0))
        house.late.ask_again(old, retry=turn)
        gate.set()
        await house.lanes.wait_idle()
        told = [action for action in house.transport.sent if Text(BUSY) in action.segments]
        assert [action.segments[0] for action in told] == [Quote("77")]
        assert getattr(house.store.of("turn_closed")[0], "turn_id", "") == "t0"
