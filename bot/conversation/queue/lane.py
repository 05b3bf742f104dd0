"""One lane: what waits in it, what is in progress, and what is next."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Order(Generic[Item]):
    """How the items of a lane follow each other.

    Those of one `person` are done one after the other, and people take turns; `due` is when an item
    may begin (by the clock's monotonic seconds), `abreast` how many may be in progress at once.
    """

    person: Callable[[Item], Hashable]
    due: Callable[[Item], float]
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

    def begin(self, order: Order[Item], now: float) -> Item | None:
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

    def take(self, may_go: Callable[[Item], bool]) -> Item | None:
        """Take the oldest of those that may go."""
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
        self.rest()
        self.wakes_at = due
        return True

    def rest(self) -> None:
        """Wait for nothing to become due."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None

    def stop(self) -> None:
        """Cancel what is in progress and leave the rest undone."""
        self.waiting.clear()
        self.rest()
        for task in self.all_tasks():
            task.cancel()

    def all_tasks(self) -> list[asyncio.Task[None]]:
        """Those that do something, and the one that is starting."""
        return [*self.tasks, self.starting] if self.starting is not None else [*self.tasks]

    def ended(self, task: asyncio.Task[None]) -> None:
        """This task is over, whether it took anything or not."""
        if self.starting is task:
            self.starting = None
        else:
            del self.tasks[task]
