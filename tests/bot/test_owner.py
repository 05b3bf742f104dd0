from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bot.domain.events import Conversation
from bot.outbox import Outbox
from bot.owner import QUIET, Owner
from tests.fakes import BOT, CountingIds, ManualClock, RecordingStore, RecordingTransport, until


class Desk:
    def __init__(self, *owners: int) -> None:
        self.transport, self.clock = RecordingTransport(), ManualClock()
        self.outbox = Outbox(transport=self.transport, store=RecordingStore(), clock=self.clock, ids=CountingIds())
        self.owner = Owner(owners=frozenset(owners), outbox=self.outbox, clock=self.clock)

    async def received(self, number: int) -> list[tuple[Conversation, str]]:
        await until(lambda: len(self.transport.sent) >= number)
        pairs = zip(self.transport.sent, self.transport.texts, strict=True)
        return [(action.conversation, text) for action, text in pairs]


@asynccontextmanager
async def desk(*owners: int) -> AsyncIterator[Desk]:
    there = Desk(*owners)
    async with asyncio.timeout(5), there.outbox.open():
        yield there


async def test_every_owner_gets_a_private_line() -> None:
    async with desk(8, 9) as there:
        there.owner.connected(BOT)
        there.owner.tell("store", "the disk is full")
        assert await there.received(2) == [
            (Conversation(BOT, "private", 8), "the disk is full"),
            (Conversation(BOT, "private", 9), "the disk is full"),
        ]


async def test_one_kind_of_trouble_is_told_once_in_ten_minutes() -> None:
    async with desk(8) as there:
        there.owner.connected(BOT)
        there.owner.tell("store", "one")
        there.owner.tell("store", "two")
        there.owner.tell("model", "three")
        assert [text for _, text in await there.received(2)] == ["one", "three"]
        there.clock.time += QUIET + 1
        there.owner.tell("store", "four")
        assert [text for _, text in await there.received(3)] == ["one", "three", "four"]


async def test_what_happened_before_the_connection_is_told_on_it() -> None:
    async with desk(8) as there:
        there.owner.tell("store", "early")
        there.owner.connected(BOT)
        assert [text for _, text in await there.received(1)] == ["early"]
        there.owner.connected(BOT)
        assert len(there.transport.sent) == 1


async def test_without_owners_nobody_is_written_to() -> None:
    async with desk() as there:
        there.owner.connected(BOT)
        there.owner.tell("store", "nobody hears")
        assert there.transport.sent == []
