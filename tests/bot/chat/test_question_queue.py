from __future__ import annotations

import asyncio

from bot.chat.lanes import MAX_WAITING
from bot.chat.tasks import Resume
from bot.core.events import Connected
from bot.core.journal import MessageOverheard, OpenTurn
from frostagent.types.messages import Completion, ModelRequest, UserMessage
from tests.bot.hall import hall
from tests.fakes import BOT, GROUP, PRIVATE, said, words


async def test_in_a_full_lane_nobody_waits_any_more_for_the_oldest_question() -> None:
    gate = asyncio.Event()

    async def think(request: ModelRequest) -> Completion:
        await gate.wait()
        return words("ok")

    async with hall(think, *[words("ok")] * MAX_WAITING) as house:
        await house.dispatcher.handle(said("0", user=1))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        for number in range(MAX_WAITING + 2):
            await house.dispatcher.handle(said(f"question {number}", user=100 + number))
        gate.set()
        await house.lanes.wait_idle()
        assert len(house.transport.sent) == 1 + MAX_WAITING
        heard = [entry.message.sender.user_id for entry in house.store.entries if isinstance(entry, MessageOverheard)]
        assert heard == [100, 101]
        assert house.rate_limiter.overflow == 2
        assert "question 1" in str(house.model.requests[1].messages[-1])  # it was overheard


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


async def test_an_interrupted_question_that_loses_its_place_leaves_no_turn_open() -> None:
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
    async with hall(think, *[words("ok")] * MAX_WAITING) as house:
        await house.dispatcher.handle(said("0", user=1))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        await house.dispatcher.handle(Connected(self_id=BOT, time=0.0))
        house.late.ask_again(old, retry=turn)
        for number in range(MAX_WAITING):
            await house.dispatcher.handle(said("hi", user=100 + number))
        gate.set()
        await house.lanes.wait_idle()
        assert getattr(house.store.of("turn_closed")[0], "turn_id", "") == "t0"
        assert len(house.transport.sent) == 1 + MAX_WAITING
