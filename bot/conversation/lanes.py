"""One lane per conversation: what arrives in a lane is done in order, lanes are independent.

Every task belongs to the group that `open` owns; a lane is there only while it has something to do.
A lane that is held begins with nothing new: what was to be done before is still on its way.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from bot.domain.deadline import last_moments
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

    def stop(self) -> None:
        """Cancel what is in progress and leave the rest undone."""
        self.waiting.clear()
        if self.task is not None:
            self.task.cancel()


class Lanes(Generic[Item]):
    """Queues by conversation, each worked off in order while somebody is at work."""

    def __init__(self, *, max_waiting: int = MAX_WAITING) -> None:
        self._max_waiting = max_waiting
        self._lanes: dict[Conversation, _Lane[Item]] = {}
        self._held: Counter[Conversation] = Counter()  # how often
        self._group: asyncio.TaskGroup | None = None
        self._work: Callable[[Item], Awaitable[None]] = _nobody_works
        self.finishing = False  # nothing is begun any more
        self._idle = asyncio.Event()
        self._idle.set()

    @asynccontextmanager
    async def open(self, work: Callable[[Item], Awaitable[None]]) -> AsyncIterator[None]:
        """Have each item done by `work`, which handles its own failures, while the block runs; at
        its end everything in progress is cancelled and waited for.
        """
        async with asyncio.TaskGroup() as group:
            self._group, self._work = group, work
            try:
                yield
            finally:
                self._group = None
                for lane in self._lanes.values():
                    lane.stop()

    def put(self, key: Conversation, item: Item) -> bool:
        """Queue an item; False when the lane is full, or the lanes are not open or finishing."""
        if self._group is None or self.finishing:
            return False
        lane = self._lanes.get(key)
        if lane is not None and len(lane.waiting) >= self._max_waiting:
            return False
        if lane is None:
            lane = self._lanes[key] = _Lane()
            self._idle.clear()
        lane.waiting.append(item)
        self._go_on(key, lane)
        return True

    def hold(self, key: Conversation) -> None:
        """Begin with nothing new there until it is released as often; what is in progress goes
        on.
        """
        self._held[key] += 1

    def is_held(self, key: Conversation) -> bool:
        """Whether nothing new is begun there."""
        return key in self._held

    def release(self, key: Conversation, *, order: Callable[[Item], float] = lambda _: 0.0) -> None:
        """Let a lane go on; what waits in it is now in this order, and as it came where that is
        equal.
        """
        self._held[key] -= 1
        if self._held[key] <= 0:
            del self._held[key]
        if (lane := self._lanes.get(key)) is not None:
            lane.waiting = deque(sorted(lane.waiting, key=order))
            self._go_on(key, lane)

    async def finish(self, *, within: float) -> int:
        """Begin nothing more, and cancel what is still in progress after so many seconds. How much
        was cancelled.

        What waits is left undone: whoever put it there must know of it from elsewhere.
        """
        self.finishing = True
        if self._lanes:
            logger.info("stopping: runs that go on: %d, with %g s to end", self.active, within)
        for key, lane in list(self._lanes.items()):
            lane.waiting.clear()
            self._go_on(key, lane)
        with suppress(TimeoutError):
            async with last_moments(within):
                await self._idle.wait()
        late = [lane.task for lane in self._lanes.values() if lane.task is not None]
        if late:
            logger.warning("runs that are cut off: %d; the next start settles them", len(late))
        for task in late:
            task.cancel()
        await self._idle.wait()
        return len(late)

    def drop(self, key: Conversation, unwanted: Callable[[Item], bool]) -> int:
        """Take items back: waiting ones are forgotten, one in progress is cancelled. How many there
        were.
        """
        lane = self._lanes.get(key)
        if lane is None:
            return 0
        dropped = self.drop_waiting(key, unwanted)
        if lane.current is not None and lane.task is not None and unwanted(lane.current):
            lane.task.cancel()
            dropped += 1
        return dropped

    def drop_waiting(self, key: Conversation, unwanted: Callable[[Item], bool]) -> int:
        """Forget items that wait. How many there were."""
        lane = self._lanes.get(key)
        if lane is None:
            return 0
        kept = [item for item in lane.waiting if not unwanted(item)]
        dropped = len(lane.waiting) - len(kept)
        lane.waiting = deque(kept)
        self._go_on(key, lane)
        return dropped

    def at(self, key: Conversation) -> tuple[Item, ...]:
        """All that waits there or is in progress."""
        lane = self._lanes.get(key)
        if lane is None:
            return ()
        return (*(() if lane.current is None else (lane.current,)), *lane.waiting)

    def has(self, key: Conversation) -> bool:
        """Whether there is something to do."""
        return key in self._lanes

    @property
    def waiting(self) -> int:
        """How many items wait or are in progress, over all lanes."""
        return sum(len(lane.waiting) + (lane.current is not None) for lane in self._lanes.values())

    @property
    def active(self) -> int:
        """How many lanes have something to do; each has one item in progress, or is about to,
        unless it is held.
        """
        return len(self._lanes)

    async def wait_idle(self) -> None:
        """Return once no lane has anything to do."""
        await self._idle.wait()

    def _go_on(self, key: Conversation, lane: _Lane[Item]) -> None:
        """Begin with the next item, unless one is in progress or the lane is held; forget a lane
        that has none.

        A task for each, so that one can be cancelled and the lane goes on.
        """
        if lane.task is not None:
            return
        if not lane.waiting or self._group is None:
            del self._lanes[key]
            if not self._lanes:
                self._idle.set()
        elif key not in self._held:
            lane.task = self._group.create_task(self._do(key, lane), name=f"lane {key}")
            lane.task.add_done_callback(lambda _: self._ended(key, lane))

    def _ended(self, key: Conversation, lane: _Lane[Item]) -> None:
        lane.current = lane.task = None
        self._go_on(key, lane)

    async def _do(self, key: Conversation, lane: _Lane[Item]) -> None:
        if not lane.waiting:
            return  # it was taken back
        lane.current = lane.waiting.popleft()
        try:
            await self._work(lane.current)
        except BROKEN as failure:
            isolate(failure)
            logger.exception("the lane of %s goes on after a failure", key)


async def _nobody_works(item: object) -> None:
    raise AssertionError(f"lanes that are not open begin with nothing: {item!r}")
