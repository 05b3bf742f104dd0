"""Turns that wait for somebody's word, go on after a restart, or cannot."""

from __future__ import annotations

import asyncio

from msgspec import structs

from bot.core.journal import Entry, RunResumed, RunSuspended, Suspended, TurnClosed, TurnOpened
from bot.core.run_ids import read_run, write_run
from frostagent.engine.run_state import close_interrupted
from frostagent.types.messages import ToolMessage, UserMessage
from frostagent.types.ports import Speaker
from frostagent.types.suspension import Allow, Decision, Deny, Suspend
from frostagent.types.tools import ToolContext, tool
from tests.bot.chat.test_turn import House, living, mark_recalled, speak
from tests.bot.outbox.test_turn_speaker import CAT
from tests.cases import each_case
from tests.fakes import GROUP, RecordingStore, ScriptedModel, calls, said, until, words


@tool
async def ask_first(context: ToolContext) -> str:
    """Waits for somebody's word."""
    if not context.allowed:
        raise Suspend("may I?", seconds=60)
    return "it was allowed"


@each_case(
    ("decision", "result"),
    [(Allow(), "it was allowed"), (Deny("not today"), "not today"), (None, "nobody allowed it in time")],
)
async def test_a_suspended_turn_goes_on_after_a_restart(decision: Decision | None, result: str) -> None:
    question = said("please")
    async with living(calls(("ask_first", ""))) as before:
        before.toolset.register(ask_first)
        await before.turns.answer(question)
        assert before.transport.sent == []
        (put_down,) = before.store.of("run_suspended")
        (opened,) = before.store.of("turn_opened")
        assert isinstance(put_down, RunSuspended)
        assert isinstance(opened, TurnOpened)
        assert before.store.of("turn_closed") == []
    stored = Suspended(put_down.turn_id, put_down.state, put_down.expires, question, opened.user)
    async with living(words("done")) as after:
        after.toolset.register(ask_first)
        assert after.suspensions.restore(stored) == GROUP
        if decision is None:
            after.clock.time += 61
        await after.turns.resume(stored.turn_id, {} if decision is None else {"c0": decision})
        told = after.model.requests[0].messages[-1]
        assert isinstance(told, ToolMessage)
        assert result in told.content
        assert after.transport.texts == ["done"]
        (closed,) = after.store.of("turn_closed")
        assert isinstance(closed, TurnClosed)
        assert [message.type for message in closed.round] == ["user", "assistant", "tool", "assistant"]
        await after.turns.resume(stored.turn_id, {})
        assert after.transport.texts == ["done"]


FORECAST = "北京今天晴，气温很高，记得带水出门"


async def test_what_was_said_before_a_run_was_suspended_is_not_said_again_after_a_restart() -> None:
    question = said("please")
    async with living(calls(speak(FORECAST)), calls(("ask_first", ""))) as before:
        before.toolset.register(ask_first)
        await before.turns.answer(question)
        assert before.transport.texts == [FORECAST]
        (put_down,) = before.store.of("run_suspended")
        assert isinstance(put_down, RunSuspended)
    stored = Suspended(put_down.turn_id, put_down.state, put_down.expires, question, UserMessage("q"), (FORECAST,))
    async with living(words(FORECAST)) as after:
        after.toolset.register(ask_first)
        after.suspensions.restore(stored)
        await after.turns.resume(stored.turn_id, {"c0": Allow()})
        assert after.transport.texts == []


@tool(side_effects="external")
async def show_cat(context: ToolContext) -> str:
    """Sends a picture."""
    await context.port(Speaker).say((CAT,))
    return "shown"


async def test_a_picture_that_was_sent_before_a_run_was_suspended_is_not_sent_again() -> None:
    steps = calls(("show_cat", "")), calls(("ask_first", "")), calls(("show_cat", "")), words("done")
    async with living(*steps) as house:
        for each in (ask_first, show_cat):
            house.toolset.register(each)
        await house.turns.answer(said("please"))
        await house.turns.resume("t1", {"c0": Allow()})
        assert [CAT in action.segments for action in house.transport.sent] == [True, False]


async def test_a_suspended_run_that_cannot_go_on_keeps_what_it_had_done() -> None:
    question = said("please")
    async with living(calls(speak("one moment")), calls(("ask_first", ""))) as before:
        before.toolset.register(ask_first)
        await before.turns.answer(question)
        (put_down,) = before.store.of("run_suspended")
        assert isinstance(put_down, RunSuspended)
    other = structs.replace(read_run(put_down.state), run_id="another")
    stored = Suspended("t1", write_run(other, GROUP), put_down.expires, question, UserMessage("q"))
    async with living() as after:
        after.suspensions.restore(stored)
        await after.turns.resume("t1", {"c0": Allow()})
        assert after.transport.texts == ["抱歉，这次没能回答上来，请稍后再试。（编号 t1）"]
        (closed,) = after.store.of("turn_closed")
        assert isinstance(closed, TurnClosed)
        kinds = ["user", "assistant", "tool", "assistant", "tool", "user"]  # a note is last
        assert [message.type for message in closed.round] == kinds
        assert closed.round == close_interrupted(closed.round)


async def test_nothing_is_allowed_that_cannot_be_written_down() -> None:
    """After a crash the stored run would still wait, and could be allowed a second time."""
    async with living(calls(("ask_first", "")), words("not now, sorry")) as house:
        house.toolset.register(ask_first)
        await house.turns.answer(said("please"))
        house.store.trouble = True
        await house.turns.resume("t1", {"c0": Allow()})
        told = house.model.requests[1].messages[-1]
        assert isinstance(told, ToolMessage)
        assert "cannot be written down at the moment" in told.content
        assert house.transport.texts == ["not now, sorry"]


async def test_a_suspended_run_recalled_while_it_begins_to_go_on_leaves_no_turn_open() -> None:
    class Slow(RecordingStore):
        async def commit(self, *entries: Entry) -> bool:
            if any(isinstance(entry, RunResumed) for entry in entries):
                self.put(*entries)
                await asyncio.Event().wait()
            return await super().commit(*entries)

    with ScriptedModel(calls(("ask_first", ""))) as model:
        house = House(model, store=Slow())
        house.toolset.register(ask_first)
        question = said("please")
        async with asyncio.timeout(30), asyncio.TaskGroup() as group:
            await house.turns.answer(question)
            task = group.create_task(house.turns.resume("t1", {"c0": Allow()}))
            await until(lambda: house.store.of("run_resumed"))
            mark_recalled(house, question)
            task.cancel()
        assert len(house.store.of("turn_closed")) == 1
