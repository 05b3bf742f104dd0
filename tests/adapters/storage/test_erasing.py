from __future__ import annotations

import asyncio

import pytest
from msgspec.structs import replace
from sqlalchemy import select

from adapters.broker.partitions import ClusterPartition, partition_of
from adapters.storage.erasure import NotErased, SqlErasing
from adapters.storage.tables import messages, speakers, turns
from bot.core.conversation import Conversation
from bot.core.journal import MemberNumbered, MessageObserved
from bot.memory.forgetting import Forgetting
from bot.memory.history import History
from frostagent.clock import SystemClock
from tests.adapters.storage.conftest import opened
from tests.adapters.storage.entries import NOW, fact, opening
from tests.adapters.storage.test_erasure import contains
from tests.bot.commands.test_forget import Asked, Nobody
from tests.fakes import BOT, GROUP, said

SECRET = "planted-霜降-word"


class Stepped(SystemClock):
    """Real time, but for what it tells: that moves by hand."""

    def __init__(self) -> None:
        self.at = NOW

    def now(self) -> float:
        return self.at


async def test_a_running_bot_forgets_a_person_and_no_byte_is_left(url: str) -> None:
    async with opened(url) as place:
        store = place.store
        store.put(MessageObserved(said(SECRET, user=12345), overheard=True))
        store.put(fact("m1", SECRET, subject=12345), fact("m2", "harmless", subject=777))
        await store.commit()
        assert await asyncio.to_thread(contains, place.database, SECRET)
        assert await store.erasing.forget_user(12345) > 0
        await store.erasing.sweep()
        assert not await asyncio.to_thread(contains, place.database, SECRET)
        assert await asyncio.to_thread(contains, place.database, "harmless")
        assert await store.erasing.forget_user(12345) == 0


async def test_a_running_bot_forgets_a_group(url: str) -> None:
    async with opened(url) as place:
        place.store.put(MessageObserved(said(SECRET), overheard=True))
        assert await place.store.erasing.forget_group(GROUP.session_id) > 0
        await place.store.erasing.sweep()
        assert not await asyncio.to_thread(contains, place.database, SECRET)


@pytest.mark.parametrize("is_group", [False, True])
async def test_what_is_asked_between_the_two_times_it_is_erased_stays_and_all_before_is_gone(
    url: str, *, is_group: bool
) -> None:
    """In their private chat or their group: the question, its turn, and the number of who asked."""
    where = GROUP if is_group else Conversation(BOT, "private", 12345)
    clock = Stepped()
    async with opened(url, clock=clock) as place:
        store = place.store
        old, new = said(SECRET, where=where, user=12345), said("新问题", where=where, user=12345, message_id="99")
        begun = opening("t-old", old, at=clock.now())
        store.put(MessageObserved(old, overheard=False), begun)

        def now() -> float:
            """The first time is over: something of before still comes, then a question."""
            first = clock.now()
            store.put(MessageObserved(replace(old, message_id="98"), overheard=True), replace(begun, turn_id="t-late"))
            clock.at += 1.0
            store.put(MessageObserved(new, overheard=False), opening("t-new", new, at=clock.now()))
            store.put(MemberNumbered(conversation=where, number=5, user_id=12345, name="小明"))
            return first

        forgetting = Forgetting(
            store.erasing,
            History(store=store),
            cancel_questions=Asked().forget,
            cancel_join_requests=Nobody().forget,
            now=now,
        )
        assert await forgetting.chat(where) > 0
        assert not await asyncio.to_thread(contains, place.database, SECRET)
        with place.database.reading() as connection:
            assert connection.execute(select(turns.c.turn_id)).all() == [("t-new",)]
            kept = connection.execute(select(messages.c.message_id, messages.c.turn_id).where(~messages.c.erased)).all()
            assert kept == [("99", "t-new")]
            assert connection.execute(select(speakers.c.number, speakers.c.user_id)).all() == [(5, 12345)]


async def test_another_workers_clock_tells_nothing_apart(url: str) -> None:
    theirs = ClusterPartition(1 - partition_of(BOT, 2), 2)
    async with opened(url) as place:
        place.store.put(MessageObserved(said(SECRET, user=12345), overheard=False))
        erasing = SqlErasing(
            database=place.database,
            batches=place.store._batches,
            writing=place.store._writing,
            commit=place.store.commit,
            now=Stepped().now,
            scope=theirs,
        )
        assert await place.store.erasing.forget_user(12345, since=0.0) == 0
        assert await erasing.forget_user(12345, since=0.0) > 0


async def test_in_trouble_nothing_is_promised(sqlite: str) -> None:
    async with opened(sqlite) as place:
        place.store._writer.fail("the disk is full")
        with pytest.raises(NotErased, match="cannot be written"):
            await place.store.erasing.forget_user(1)
