"""One lane per conversation: what arrives in a lane is done in order, lanes are independent.

What waits may still change: it is joined by what belongs to it, or is not due yet. Every task
belongs to the group that `open` owns; a lane is there only while it has something to do. A lane
that is held begins with nothing new: what was to be done before is still on its way.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Generic, TypeVar

from bot.core.conversation import Conversation
from frostagent.cancellation import BROKEN, isolate, last_moments
from frostagent.types.ports import Clock

logger = logging.getLogger(__name__)

Item = TypeVar("Item")


def _nobody(_: object) -> Hashable:
    return None


def _at_once(_: object) -> float:
    return 0.0


@dataclass(frozen=True, slots=True)
class Order(Generic[Item]):
    """How the items of a lane follow each other.

    Those of one `person` are done one after the other, and people take turns; `due` is when an item
    may begin (by the clock's monotonic seconds), `abreast` how many may be in progress at once.
    """

    person: Callable[[Item], Hashable] = _nobody
    due: Callable[[Item], float] = _at_once
    abreast: int = 1


@dataclass(slots=True)
class Lane(Generic[Item]):
    """The works that wait, oldest first, and the tasks that do the rest; the one that is `starting`
    takes whatever is next once it runs.

    `since` is the one of its `turns` from which on each person waits for the next; `timer`
    begins what becomes due at `wakes_at`.
    """

    waiting: list[Item] = field(default_factory=list)
    tasks: dict[asyncio.Task[None], Item] = field(default_factory=dict)
    starting: asyncio.Task[None] | None = None
    since: dict[Hashable, int] = field(default_factory=dict)
    turns: int = 0
    timer: asyncio.Task[None] | None = None
    wakes_at: float = 0.0

    def add(self, order: Order[Item], item: Item) -> None:
        """Have an item wait: whoever had a turn just now comes after those who come with it, and
        nobody who comes later passes them, new or long since served.
        """
        if self.turns:  # else nobody has had one
            person = order.person(item)
            if all(order.person(other) != person for other in self.waiting):
                self.since[person] = max(self.since.get(person, 0), self.turns - 1)
        self.waiting.append(item)

    def next(self, order: Order[Item], now: float) -> int | None:
        """The place of what may begin now: the oldest of whoever has waited longest for a turn, so
        that nobody waits for two turns of anybody else's; None where nothing may.
        """
        if not self.waiting or len(self.tasks) >= order.abreast:
            return None
        if len(self.waiting) == 1 and not self.tasks:
            return 0 if order.due(self.waiting[0]) <= now else None  # as nearly always
        busy = set(map(order.person, self.tasks.values()))
        free = (
            (self.since.get(person, 0), place)
            for place, item in enumerate(self.waiting)
            if order.due(item) <= now and (person := order.person(item)) not in busy
        )
        return min(free, default=(0, None))[1]

    def begin_next(self, order: Order[Item], now: float) -> Item | None:
        """Take what is next: it is in progress from now on, in the task that is starting."""
        place, task = self.next(order, now), self.starting
        if place is None or task is None:
            return None
        item = self.tasks[task] = self.waiting.pop(place)
        self.starting = None
        self.turns += 1
        self.since[order.person(item)] = self.turns
        return item

    def join(self, change: Callable[[Item], Item | None]) -> bool:
        """Put in the place of the first item that waits what `change` makes of it; False where that
        is None for all.
        """
        for place, item in enumerate(self.waiting):
            if (changed := change(item)) is not None:
                self.waiting[place] = changed
                return True
        return False

    def revise(self, change: Callable[[Item], Item | None]) -> int:
        """The same for each item that waits; None is forgotten. How many were."""
        before = len(self.waiting)
        self.waiting = [kept for item in self.waiting if (kept := change(item)) is not None]
        return before - len(self.waiting)

    def cancel(self, unwanted: Callable[[Item], bool]) -> int:
        """Cancel what is in progress. How many items there were."""
        tasks = [task for task, item in self.under_way() if unwanted(item)]
        for task in tasks:
            task.cancel()
        return len(tasks)

    def under_way(self) -> list[tuple[asyncio.Task[None], Item]]:
        """What is in progress: what is done leaves its place a moment later."""
        return [(task, item) for task, item in self.tasks.items() if not task.done()]

    def items(self) -> tuple[Item, ...]:
        """All that is in progress or waits."""
        return (*(item for _, item in self.under_way()), *self.waiting)

    def is_full(self, most: int) -> bool:
        """Whether so many wait; 0 is no limit."""
        return 0 < most <= len(self.waiting)

    def pop_oldest(self, may_go: Callable[[Item], bool]) -> Item | None:
        """The oldest of those that may go, which waits no more; None if there is none."""
        oldest = next((item for item in self.waiting if may_go(item)), None)
        if oldest is not None:
            self.waiting.remove(oldest)
        return oldest

    def wants_timer(self, order: Order[Item], now: float) -> bool:
        """Whether a timer is needed that wakes it when the next item is due; it has none any more
        in that case.
        """
        if not self.waiting:
            return False
        due = min((due for item in self.waiting if (due := order.due(item)) > now), default=None)
        if due is None or (self.timer is not None and self.wakes_at <= due):
            return False
        self.cancel_timer()
        self.wakes_at = due
        return True

    def cancel_timer(self) -> None:
        """Wait for nothing to become due."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None

    def stop(self) -> None:
        """Cancel what is in progress and leave the rest undone."""
        self.waiting.clear()
        self.cancel_timer()
        for task in self.all_tasks():
            task.cancel()

    def all_tasks(self) -> list[asyncio.Task[None]]:
        """Those that do something, and the one that is starting."""
        return [*self.tasks, self.starting] if self.starting is not None else [*self.tasks]

    def remove_task(self, task: asyncio.Task[None]) -> None:
        """This task is over, whether it took anything or not."""
        if self.starting is task:
            self.starting = None
        else:
            del self.tasks[task]


MAX_WAITING = 64  # in one lane: more is a flood, not a conversation


class Lanes(Generic[Item]):
    """Queues by conversation, each worked off in order while somebody is at work."""

    def __init__(
        self,
        *,
        clock: Clock,
        order: Order[Item],
        max_waiting: int = MAX_WAITING,
    ) -> None:
        """`max_waiting` is for each lane; 0 is no limit."""
        self._clock = clock
        self._order = order
        self._max_waiting = max_waiting
        self._lanes: dict[Conversation, Lane[Item]] = {}
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
        if lane is not None and lane.is_full(self._max_waiting):
            return False
        if lane is None:
            lane = self._lanes[key] = Lane()
            self._idle.clear()
        lane.add(self._order, item)
        self._advance(key, lane)
        return True

    def join(self, key: Conversation, change: Callable[[Item], Item | None]) -> bool:
        """Put in the place of the first item that waits what `change` makes of it; False where that
        is None for all.
        """
        if (lane := self._lanes.get(key)) is None or not lane.join(change):
            return False
        self._advance(key, lane)
        return True

    def displace(self, key: Conversation, may_go: Callable[[Item], bool]) -> Item | None:
        """Where the lane is full, the oldest item that may go: it waits no more."""
        if (lane := self._lanes.get(key)) is None or not lane.is_full(self._max_waiting):
            return None
        return lane.pop_oldest(may_go)

    def hold(self, key: Conversation) -> None:
        """Begin with nothing new there until it is released as often; what is in progress goes
        on.
        """
        self._held[key] += 1

    def is_held(self, key: Conversation) -> bool:
        """Whether nothing new is begun there."""
        return key in self._held

    def release(self, key: Conversation, *, order: Callable[[Item], float] | None = None) -> None:
        """Let a lane go on; what waits in it is now in this order, if there is one, and as it came
        where that is equal.
        """
        self._held[key] -= 1
        if self._held[key] <= 0:
            del self._held[key]
        if (lane := self._lanes.get(key)) is not None:
            if order is not None:
                lane.waiting.sort(key=order)
            self._advance(key, lane)

    async def finish(self, *, within: float) -> int:
        """Begin nothing more, and cancel what is still in progress after so many seconds. How much
        was cancelled.

        What waits is left undone: whoever put it there must know of it from elsewhere.
        """
        self.finishing = True
        for key, lane in list(self._lanes.items()):
            lane.waiting.clear()
            self._advance(key, lane)
        if self._lanes:
            logger.info("stopping: runs that go on: %d, with %g s to end", self.active, within)
        with suppress(TimeoutError):
            async with last_moments(within):
                await self._idle.wait()
        late = [task for lane in self._lanes.values() for task in lane.all_tasks()]
        if late:
            logger.warning("runs that are cut off: %d; the next start settles them", len(late))
        for task in late:
            task.cancel()
        await self._idle.wait()
        return len(late)

    def drop_current(self, key: Conversation, unwanted: Callable[[Item], bool]) -> int:
        """Cancel what is in progress. How many there were."""
        return lane.cancel(unwanted) if (lane := self._lanes.get(key)) else 0

    def drop_waiting(self, key: Conversation, unwanted: Callable[[Item], bool]) -> int:
        """Forget items that wait. How many there were."""
        return self.revise(key, lambda item: None if unwanted(item) else item)

    def revise(self, key: Conversation, change: Callable[[Item], Item | None]) -> int:
        """Put in the place of each item that waits what `change` makes of it; None is forgotten.
        How many were.
        """
        if (lane := self._lanes.get(key)) is None:
            return 0
        forgotten = lane.revise(change)
        self._advance(key, lane)
        return forgotten

    def at(self, key: Conversation) -> tuple[Item, ...]:
        """All that waits there or is in progress."""
        return lane.items() if (lane := self._lanes.get(key)) else ()

    def has(self, key: Conversation) -> bool:
        """Whether there is something to do."""
        return key in self._lanes

    @property
    def places(self) -> tuple[Conversation, ...]:
        """Where there is something to do."""
        return tuple(self._lanes)

    @property
    def waiting(self) -> int:
        """How many items wait or are in progress, over all lanes."""
        return sum(len(lane.waiting) + len(lane.tasks) for lane in self._lanes.values())

    def in_progress(self) -> Mapping[object, Conversation]:
        """Where something is in progress, by what does it: the same as long as it lasts."""
        return {task: key for key, lane in self._lanes.items() for task in lane.tasks}

    @property
    def active(self) -> int:
        """How many lanes have something to do; each has an item in progress, or is about to, unless
        it is held or nothing in it is due.
        """
        return len(self._lanes)

    async def wait_idle(self) -> None:
        """Return once no lane has anything to do."""
        await self._idle.wait()

    def _advance(self, key: Conversation, lane: Lane[Item]) -> None:
        """Begin with what is next, or wait for what is due next, unless the lane is held; forget a
        lane that has nothing to do.

        A task for each, so that one can be cancelled and the lane goes on.
        """
        if not (lane.tasks or lane.starting) and (not lane.waiting or self._group is None):
            lane.cancel_timer()
            del self._lanes[key]
            if not self._lanes:
                self._idle.set()
        elif self._group is not None and key not in self._held and lane.starting is None:
            now = self._clock.monotonic()
            if lane.next(self._order, now) is not None:
                task = self._group.create_task(self._do(key, lane), name=f"lane {key}")
                lane.starting = task
                task.add_done_callback(partial(self._ended, key, lane))
            elif lane.wants_timer(self._order, now):
                lane.timer = self._group.create_task(self._doze(key, lane), name=f"timer of {key}")

    async def _doze(self, key: Conversation, lane: Lane[Item]) -> None:
        await self._clock.sleep(max(0.0, lane.wakes_at - self._clock.monotonic()))
        lane.timer = None
        self._advance(key, lane)

    def _ended(self, key: Conversation, lane: Lane[Item], task: asyncio.Task[None]) -> None:
        lane.remove_task(task)
        self._advance(key, lane)

    async def _do(self, key: Conversation, lane: Lane[Item]) -> None:
        item = lane.begin_next(self._order, self._clock.monotonic())
        if item is None:
            return  # it was taken back, or is not due any more
        if lane.waiting:
            self._advance(key, lane)  # others may go on beside it
        try:
            await self._work(item)
        except BROKEN as failure:
            isolate(failure)
            logger.exception("the lane of %s goes on after a failure", key)


async def _nobody_works(item: object) -> None:
    raise AssertionError(f"lanes that are not open begin with nothing: {item!r}")
