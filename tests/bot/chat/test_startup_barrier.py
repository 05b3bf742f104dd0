"""What comes too early waits, and nothing is lost or overtaken."""

from __future__ import annotations

import asyncio

from bot.chat.dispatcher import StartupBarrier
from bot.core.events import Event
from tests.fakes import said


class Sink:
    """Remembers what came."""

    def __init__(self) -> None:
        self.came: list[Event] = []

    async def handle(self, event: Event) -> None:
        self.came.append(event)


async def test_events_wait_until_it_is_open_and_keep_their_order() -> None:
    sink = Sink()
    startup_barrier = StartupBarrier(sink)
    events = [said(str(number)) for number in range(3)]

    async def connection() -> None:
        for event in events:
            await startup_barrier.handle(event)

    async with asyncio.TaskGroup() as group:
        pumping = group.create_task(connection())
        for _ in range(5):
            await asyncio.sleep(0)
        assert sink.came == []
        assert not pumping.done()
        startup_barrier.open()
    assert sink.came == events
    await startup_barrier.handle(events[0])
    assert len(sink.came) == 4


async def test_who_waits_for_it_to_open_goes_on_then() -> None:
    startup_barrier = StartupBarrier(Sink())
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(startup_barrier.opened())
        for _ in range(5):
            await asyncio.sleep(0)
        assert not waiting.done()
        startup_barrier.open()
    await startup_barrier.opened()
