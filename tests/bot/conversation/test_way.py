from __future__ import annotations

import asyncio

import pytest

from bot.domain.chat import Completion, ModelRequest, UserMessage
from bot.domain.events import (
    Connected,
)
from bot.domain.segments import Card, Forward
from tests.bot.hall import hall
from tests.fakes import GROUP, said, words


async def test_what_is_not_addressed_is_observed_and_read_with_the_next_question() -> None:
    async with hall(words("tea")) as house:
        await house.take(said("I like tea", user=5, name="小红", at=False), said("what does she like?"))
        user = house.history.messages(GROUP)[0]
        assert isinstance(user, UserMessage)
        assert "小红(5): I like tea" in user.text


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
