"""Lanes, one per conversation: work in a lane is done in order, lanes are independent.

Waiting items may still change: others join them, or they are not due yet. Every task belongs to the
group that `open` owns; a lane exists only while it has work. A held lane begins no new work:
earlier work may still arrive.
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
    """The order of items in a lane. Items of one `person` are done one after the other, and people
    take turns; `due` is when an item may begin (monotonic seconds), `abreast` how many may be in
    progress.
    """

    person: Callable[[Item], Hashable] = _nobody
    due: Callable[[Item], float] = _at_once
    abreast: int = 1


@dataclass(slots=True)
class Lane(Generic[Item]):
    """Waiting items, oldest first, and tasks with their items; the task that is `starting` takes
    the next item once it runs. `since` is the turn number from which each person has waited;
    `timer` begins items that become due at `wakes_at`.
    """

    waiting: list[Item] = field(default_factory=list)
    tasks: dict[asyncio.Task[None], Item] = field(default_factory=dict)
    starting: asyncio.Task[None] | None = None
    since: dict[Hashable, int] = field(default_factory=dict)
    turns: int = 0
    timer: asyncio.Task[None] | None = None
    wakes_at: float = 0.0

    def add(self, order: Order[Item], item: Item) -> None:
        """Add a waiting item. A person just served comes after others who arrive at the same time,
        and no later arrival passes waiting ones.
        """
        if self.turns:  # else no one was served yet
            person = order.person(item)
            if all(order.person(other) != person for other in self.waiting):
                self.since[person] = max(self.since.get(person, 0), self.turns - 1)
        self.waiting.append(item)

    def next(self, order: Order[Item], now: float) -> int | None:
        """The index of the item to begin now, if any: the oldest of the person who has waited
        longest, so that no one waits for two turns of another.
        """
        if not self.waiting or len(self.tasks) >= order.abreast:
            return None
        if len(self.waiting) == 1 and not self.tasks:
            return 0 if order.due(self.waiting[0]) <= now else None  # the usual case
        busy = set(map(order.person, self.tasks.values()))
        free = (
            (self.since.get(person, 0), place)
            for place, item in enumerate(self.waiting)
            if order.due(item) <= now and (person := order.person(item)) not in busy
        )
        return min(free, default=(0, None))[1]

    def begin_next(self, order: Order[Item], now: float) -> Item | None:
        """Move the next item to the task that is starting."""
        place, task = self.next(order, now), self.starting
        if place is None or task is None:
            return None
        item = self.tasks[task] = self.waiting.pop(place)
        self.starting = None
        self.turns += 1
        self.since[order.person(item)] = self.turns
        return item

    def join(self, change: Callable[[Item], Item | None]) -> bool:
        """Replace the first waiting item for which `change` returns one; False if there is none."""
        for place, item in enumerate(self.waiting):
            if (changed := change(item)) is not None:
                self.waiting[place] = changed
                return True
        return False

    def revise(self, change: Callable[[Item], Item | None]) -> int:
        """Replace each waiting item; None removes it. Returns the number removed."""
        before = len(self.waiting)
        self.waiting = [kept for item in self.waiting if (kept := change(item)) is not None]
        return before - len(self.waiting)

    def cancel(self, unwanted: Callable[[Item], bool]) -> int:
        """Cancel items in progress; returns their number."""
        tasks = [task for task, item in self.under_way() if unwanted(item)]
        for task in tasks:
            task.cancel()
        return len(tasks)

    def under_way(self) -> list[tuple[asyncio.Task[None], Item]]:
        """Items in progress, except tasks that are done and not removed yet."""
        return [(task, item) for task, item in self.tasks.items() if not task.done()]

    def items(self) -> tuple[Item, ...]:
        return (*(item for _, item in self.under_way()), *self.waiting)

    def is_full(self, most: int) -> bool:
        """Whether `most` items wait; 0 is no limit."""
        return 0 < most <= len(self.waiting)

    def pop_oldest(self, may_go: Callable[[Item], bool]) -> Item | None:
        """Remove and return the oldest waiting item that may go, if any."""
        oldest = next((item for item in self.waiting if may_go(item)), None)
        if oldest is not None:
            self.waiting.remove(oldest)
        return oldest

    def wants_timer(self, order: Order[Item], now: float) -> bool:
        """Whether the caller must set a timer for the next due item; the old timer is cancelled
        then.
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
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None

    def stop(self) -> None:
        """Cancel items in progress, and drop waiting ones."""
        self.waiting.clear()
        self.cancel_timer()
        for task in self.all_tasks():
            task.cancel()

    def all_tasks(self) -> list[asyncio.Task[None]]:
        """All tasks, including the one that is starting."""
        return [*self.tasks, self.starting] if self.starting is not None else [*self.tasks]

    def remove_task(self, task: asyncio.Task[None]) -> None:
        """Remove a finished task, whether it took an item or not."""
        if self.starting is task:
            self.starting = None
        else:
            del self.tasks[task]


MAX_WAITING = 64  # per lane: more is a flood, not a conversation


class Lanes(Generic[Item]):
    """Lanes by conversation, each processed in order while it is open."""

    def __init__(
        self,
        *,
        clock: Clock,
        order: Order[Item],
        max_waiting: int = MAX_WAITING,
    ) -> None:
        """`max_waiting` is per lane; 0 is no limit."""
        self._clock = clock
        self._order = order
        self._max_waiting = max_waiting
        self._lanes: dict[Conversation, Lane[Item]] = {}
        self._held: Counter[Conversation] = Counter()  # hold counts
        self._group: asyncio.TaskGroup | None = None
        self._work: Callable[[Item], Awaitable[None]] = _nobody_works
        self.finishing = False  # no work begins any more
        self._idle = asyncio.Event()
        self._idle.set()

    @asynccontextmanager
    async def open(self, work: Callable[[Item], Awaitable[None]]) -> AsyncIterator[None]:
        """Process items with `work`, which handles its own failures, while the block runs; at its
        end work in progress is cancelled and awaited.
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
        """Queue an item; False if the lane is full, or the lanes are not open or finishing."""
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
        """Replace the first waiting item for which `change` returns one; False if there is none."""
        if (lane := self._lanes.get(key)) is None or not lane.join(change):
            return False
        self._advance(key, lane)
        return True

    def displace(self, key: Conversation, may_go: Callable[[Item], bool]) -> Item | None:
        """If the lane is full, remove and return the oldest item that may go."""
        if (lane := self._lanes.get(key)) is None or not lane.is_full(self._max_waiting):
            return None
        return lane.pop_oldest(may_go)

    def hold(self, key: Conversation) -> None:
        """Begin no new work there until it is released as often; work in progress goes on."""
        self._held[key] += 1

    def is_held(self, key: Conversation) -> bool:
        return key in self._held

    def release(self, key: Conversation, *, order: Callable[[Item], float] | None = None) -> None:
        """Release a lane once. If `order` is given, sort its waiting items by it (stable)."""
        self._held[key] -= 1
        if self._held[key] <= 0:
            del self._held[key]
        if (lane := self._lanes.get(key)) is not None:
            if order is not None:
                lane.waiting.sort(key=order)
            self._advance(key, lane)

    async def finish(self, *, within: float) -> int:
        """Begin no new work, and cancel what is in progress after `within` seconds; returns the
        number of cancelled tasks. Waiting items are dropped: the journal must know them.
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
        """Cancel items in progress; returns their number."""
        return lane.cancel(unwanted) if (lane := self._lanes.get(key)) else 0

    def drop_waiting(self, key: Conversation, unwanted: Callable[[Item], bool]) -> int:
        """Drop waiting items; returns their number."""
        return self.revise(key, lambda item: None if unwanted(item) else item)

    def revise(self, key: Conversation, change: Callable[[Item], Item | None]) -> int:
        """Replace each waiting item; None removes it. Returns the number removed."""
        if (lane := self._lanes.get(key)) is None:
            return 0
        forgotten = lane.revise(change)
        self._advance(key, lane)
        return forgotten

    def at(self, key: Conversation) -> tuple[Item, ...]:
        """All items there, in progress or waiting."""
        return lane.items() if (lane := self._lanes.get(key)) else ()

    def has(self, key: Conversation) -> bool:
        return key in self._lanes

    @property
    def places(self) -> tuple[Conversation, ...]:
        return tuple(self._lanes)

    @property
    def waiting(self) -> int:
        """The number of items waiting or in progress, over all lanes."""
        return sum(len(lane.waiting) + len(lane.tasks) for lane in self._lanes.values())

    def in_progress(self) -> Mapping[object, Conversation]:
        """The conversations with work in progress, by a key that stays the same until it ends."""
        return {task: key for key, lane in self._lanes.items() for task in lane.tasks}

    @property
    def active(self) -> int:
        """The number of lanes with work. Each has an item in progress, or is about to, unless it is
        held or has none due.
        """
        return len(self._lanes)

    async def wait_idle(self) -> None:
        await self._idle.wait()

    def _advance(self, key: Conversation, lane: Lane[Item]) -> None:
        """Begin the next item, or set a timer for it, unless the lane is held; remove an empty
        lane. Each item has its own task, so that cancelling one does not stop the lane.
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
            return  # recalled, or no longer due
        if lane.waiting:
            self._advance(key, lane)  # others may run beside it
        try:
            await self._work(item)
        except BROKEN as failure:
            isolate(failure)
            logger.exception("the lane of %s goes on after a failure", key)


async def _nobody_works(item: object) -> None:
    raise AssertionError(f"lanes that are not open begin with nothing: {item!r}")
