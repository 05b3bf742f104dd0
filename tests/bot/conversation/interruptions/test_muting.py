"""The bot is muted while it is about something there."""

from __future__ import annotations

import asyncio

import pytest

from bot.conversation.intake.restraint import MUTED
from bot.domain.events import MessageReceived, Muted
from bot.domain.journal import TurnClosed
from bot.domain.run import Stop
from bot.domain.segments import Quote, Text
from bot.prompt import notes
from bot.prompt.wording_zh import ZH
from tests.bot.conversation.interruptions.test_stopping import hanging
from tests.bot.hall import hall, muted
from tests.e2e.test_suspended_turns import ask_first
from tests.fakes import GROUP, calls, said, words


async def test_a_run_under_way_ends_and_it_is_written_down_why() -> None:
    async with hanging(words("next")) as house:
        await house.take(muted(60))
        (closed,) = house.store.of("turn_closed")
        assert isinstance(closed, TurnClosed)
        assert closed.stop is Stop.STOPPED
        assert closed.round[-1] == notes.note(ZH, ZH.about.broken_off)
        assert [(one.message_id, one.reason) for one in house.verdicts][-1] == ("q1", MUTED)
        await house.take(said("hello?", message_id="q2"), muted(0), said("and now?", message_id="q3"))
        assert house.transport.texts == ["next"]
        assert len(house.model.requests) == 2


async def test_what_its_asker_had_still_said_is_overheard() -> None:
    async with hanging() as house:
        await house.dispatcher.handle(said("more", message_id="2"))
        await house.take(muted(60))
        assert [message.message_id for message in house.history.take_overheard(GROUP)] == ["2"]


@pytest.mark.parametrize("event", [muted(60, user_id=5), muted(0)], ids=["somebody else", "a lift"])
async def test_what_mutes_somebody_else_ends_nothing(event: Muted) -> None:
    async with hanging() as house:
        await house.dispatcher.handle(event)
        assert not any(live.is_stopped for live in house.live.at(GROUP))
        assert len(house.live.at(GROUP)) == 1


async def test_a_question_that_is_being_prepared_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = asyncio.Event()

    async with hall() as house:

        async def slow(account: int, message_id: str) -> MessageReceived | None:
            if house.live.at(GROUP):
                asked.set()
                await asyncio.Event().wait()
            return None

        monkeypatch.setattr(house.transport, "get_message", slow)
        await house.dispatcher.handle(said((Quote("8"), Text("go")), message_id="q1"))
        await asked.wait()
        await house.take(muted(60))
        assert house.model.requests == []
        assert house.store.of("turn_opened") == []
        assert [message.message_id for message in house.history.take_overheard(GROUP)] == ["q1"]
        assert [(one.message_id, one.reason) for one in house.verdicts][-1] == ("q1", MUTED)


async def test_a_run_that_waits_for_an_owners_word_still_waits() -> None:
    async with hall(calls(("ask_first", ""))) as house:
        house.toolset.register(ask_first)
        await house.take(said("please", message_id="q1"))
        await house.take(muted(60))
        assert len(house.suspensions.waiting()) == 1
        assert house.store.of("turn_closed") == []
