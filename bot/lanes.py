"""One lane per conversation: what arrives in a lane is done in order, lanes are independent.

Every task belongs to the group that `open` owns; a lane has a worker only while it has something to do.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from bot.domain.events import Conversation
from bot.domain.faults import BROKEN, isolate

logger = logging.getLogger(__name__)

MAX_WAITING = 50  # in one lane: more is a flood, not a conversation

Item = TypeVar("Item")


@dataclass(slots=True)
class _Lane(Generic[Item]):
    waiting: deque[Item] = field(default_factory=deque)
    current: Item | None = None
    task: asyncio.Task[None] | None = None
    worker: asyncio.Task[None] | None = None

    def stop(self) -> None:
        """Cancel what is in progress and leave the rest undone."""
        self.waiting.clear()
        for task in (self.task, self.worker):
            if task is not None:
                task.cancel()


class Lanes(Generic[Item]):
    """Queues by conversation, each worked off in order by `work`, which handles its own failures."""

    def __init__(self, *, work: Callable[[Item], Awaitable[None]], max_waiting: int = MAX_WAITING) -> None:
        self._work = work
        self._max_waiting = max_waiting
        self._lanes: dict[Conversation, _Lane[Item]] = {}
        self._group: asyncio.TaskGroup | None = None
        self._finishing = False
        self._idle = asyncio.Event()
        self._idle.set()

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Own the work while the block runs; at its end everything in progress is cancelled and waited for."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            try:
                yield
            finally:
                self._group = None
                for lane in self._lanes.values():
                    lane.stop()

    def put(self, key: Conversation, item: Item) -> bool:
        """Queue an item; False when the lane is full, or the lanes are not open or finishing."""
        if self._group is None or self._finishing:
            return False
        lane = self._lanes.get(key)
        if lane is None:
            lane = self._lanes[key] = _Lane()
            self._idle.clear()
            lane.worker = self._group.create_task(self._work_off(key, lane), name=f"lane {key}")
        if len(lane.waiting) >= self._max_waiting:
            return False
        lane.waiting.append(item)
        return True

    async def finish(self, *, within: float) -> int:
        """Begin nothing more, and cancel what is still in progress after so many seconds. How much was cancelled.

        What waits is left undone: whoever put it there must know of it from elsewhere.
        """
        self._finishing = True
        for lane in self._lanes.values():
            lane.waiting.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(within):
                await self._idle.wait()
        late = [lane.task for lane in self._lanes.values() if lane.task is not None]
        for task in late:
            task.cancel()
        await self._idle.wait()
        return len(late)

    def drop(self, key: Conversation, unwanted: Callable[[Item], bool]) -> int:
        """Take items back: waiting ones are forgotten, one in progress is cancelled. How many there were."""
        lane = self._lanes.get(key)
        if lane is None:
            return 0
        kept = [item for item in lane.waiting if not unwanted(item)]
        dropped = len(lane.waiting) - len(kept)
        lane.waiting = deque(kept)
        if lane.current is not None and lane.task is not None and unwanted(lane.current):
            lane.task.cancel()
            dropped += 1
        return dropped

    @property
    def waiting(self) -> int:
        """How many items wait or are in progress, over all lanes."""
        return sum(len(lane.waiting) + (lane.current is not None) for lane in self._lanes.values())

    @property
    def active(self) -> int:
        """How many lanes have something to do; each has one item in progress, or is about to."""
        return len(self._lanes)

    async def wait_idle(self) -> None:
        """Return once no lane has anything to do."""
        await self._idle.wait()

    async def _work_off(self, key: Conversation, lane: _Lane[Item]) -> None:
        try:
            while lane.waiting:
                await self._do(key, lane, lane.waiting.popleft())
        finally:
            del self._lanes[key]
            if not self._lanes:
                self._idle.set()

    async def _do(self, key: Conversation, lane: _Lane[Item], item: Item) -> None:
        group = self._group
        if group is None:
            return
        lane.current = item
        lane.task = group.create_task(self._guarded(key, item))
        try:
            await asyncio.wait({lane.task})
        finally:
            lane.current = lane.task = None

    async def _guarded(self, key: Conversation, item: Item) -> None:
        try:
            await self._work(item)
        except BROKEN as failure:
            isolate(failure)
            logger.exception("the lane of %s goes on after a failure", key)
