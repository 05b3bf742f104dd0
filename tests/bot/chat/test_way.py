from __future__ import annotations

import asyncio
import logging

import pytest

from bot.approvals.tool_call_wording import waiting_line
from bot.chat.tasks import Task
from bot.core.events import Connected
from bot.core.journal import Judged, MessageErased, MessageObserved
from bot.core.segments import Card, Forward
from bot.policy.wake import Rules, Wake
from frostagent.types.messages import Completion, ModelRequest, UserMessage
from frostagent.types.speech import Quote, Text
from tests.bot.chat.test_turn import OWNER
from tests.bot.hall import hall
from tests.cases import each_case
from tests.e2e.test_suspended_turns import ask_first
from tests.fakes import BOT, GROUP, calls, said, words


async def test_what_is_not_addressed_is_observed_and_read_with_the_next_question() -> None:
    async with hall(words("tea")) as house:
        await house.take(said("I like tea", user=5, name="小红", at=False), said("what does she like?"))
        user = house.history.messages(GROUP)[0]
        assert isinstance(user, UserMessage)
        assert "小红#1: I like tea" in user.text


async def test_what_is_ignored_is_logged_with_its_place(caplog: pytest.LogCaptureFixture) -> None:
    rules = Rules(groups=frozenset({1}))
    async with hall(rules=rules) as house:
        with caplog.at_level(logging.DEBUG, "bot.chat.message_log"):
            await house.take(said("hi", message_id="7"))
    assert f"ignored message 7 in {GROUP}: " in caplog.text


async def test_our_other_account_is_heard_but_never_answered() -> None:
    async with hall(words("ok")) as house:
        await house.take(Connected(self_id=20002, time=0.0), said("hi bot", user=20002), said("hi"))
        assert house.transport.texts == ["ok"]
        user = house.history.messages(GROUP)[0]
        assert "hi bot" in str(user)


async def test_a_huge_card_or_forward_is_not_kept() -> None:
    async with hall() as house:
        heavy = (Forward("f1", content="x" * 1_000_000), Card("json", data="y" * 1_000_000, prompt="news"))
        await house.take(said(heavy, at=False, message_id="70"))
        kept = house.history.known(GROUP, "70")
        assert kept is not None
        assert len(repr(kept)) < 3000


async def test_a_run_that_is_cut_off_leaves_its_turn_open(caplog: pytest.LogCaptureFixture) -> None:
    asked = asyncio.Event()

    async def think(request: ModelRequest) -> Completion:
        asked.set()
        await asyncio.Event().wait()
        return words("never")

    async with hall(think) as house:
        await house.dispatcher.handle(said("hi"))
        await asked.wait()
        await house.lanes.finish(within=0)
        assert len(house.store.of("turn_opened")) == 1
        assert house.store.of("turn_closed") == []
    assert "runs that are cut off: 1" in caplog.text


@each_case("in_the_lane", [False, True])
async def test_an_owners_word_is_kept_as_taken_and_as_nothing_else(in_the_lane: bool) -> None:
    """Where it quotes what only the store knows, it is found to be one in the lane."""
    asked = said(waiting_line([1]), user=BOT, message_id="70", at=False)
    text = (Quote("70"), Text("同意")) if in_the_lane else "同意 A1"
    word = said(text, user=OWNER, message_id="71")
    async with hall(calls(("ask_first", "")), words("done")) as house:
        house.toolset.register(ask_first)
        house.store.put(MessageObserved(asked, overheard=False))
        await house.take(said("please"))
        await house.take(word)
        assert house.transport.texts == ["A1 已同意。", "done"]
        kept = [
            entry
            for entry in house.store.entries
            if (isinstance(entry, MessageObserved) and entry.message == word) or isinstance(entry, MessageErased)
        ]
        wake = Judged(conversation=GROUP, message_id="71", sender=OWNER, wakes=True, reason="mention")
        observed = MessageObserved(word, overheard=not in_the_lane, judged=wake if in_the_lane else None)
        assert kept == [observed, MessageErased(GROUP, "71")]


async def test_an_owners_word_leaves_the_question_that_it_waited_with() -> None:
    asked = said(waiting_line([1]), user=BOT, message_id="70", at=False)
    word, question = said((Quote("70"), Text("同意")), user=OWNER), said("and now?", user=OWNER)
    async with hall(calls(("ask_first", "")), words("later"), words("done")) as house:
        house.toolset.register(ask_first)
        house.store.put(MessageObserved(asked, overheard=False))
        await house.take(said("please"))
        house.lanes.put(GROUP, Task(question, Wake("mention"), house.clock.now(), lines=(word,)))
        await house.lanes.wait_idle()
        assert house.transport.texts == ["A1 已同意。", "later", "done"]
        assert "同意" not in str(house.model.requests[1].messages[-1])
