"""The entries that are not written yet, in order, with those who wait for them among them."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import TypeAlias

from msgspec import Struct

from adapters.storage.ahead import Ahead, Put
from adapters.storage.batches import Written
from bot.domain.journal import MessageObserved
from bot.domain.run import StepFinished, ToolFinished, ToolStarted


class _Promise(Struct, frozen=True):
    """Somebody waits for the last `entries` before this place in the queue."""

    entries: int
    kept: asyncio.Future[bool]

    def keep(self, word: bool) -> None:
        if not self.kept.done():  # who waited may have been cancelled
            self.kept.set_result(word)


_Item: TypeAlias = "Put | _Promise"


class Backlog:
    """`queue` is what was put, `writing` what was taken from it and is not settled.

    `full` is how many entries it may hold before `make_room`; at first that is `limit`.
    `caught_up` and `lost` count entries since the last outage began.
    """

    def __init__(self, limit: int) -> None:
        self.queue: deque[_Item] = deque()
        self.writing: list[Put] = []
        self.full = limit
        self.caught_up = self.lost = 0
        self._limit = limit
        # Each with the number of entries in `writing` it stands behind.
        self._promises: list[tuple[int, _Promise]] = []

    def __len__(self) -> int:
        return len(self.queue) + len(self.writing)

    def promise(self, entries: int) -> asyncio.Future[bool]:
        """Whether all that was put until now came to be written, of the last `entries` each."""
        promise = _Promise(entries, asyncio.get_running_loop().create_future())
        self.queue.append(promise)
        return promise.kept

    def write_ahead(self, ahead: Ahead) -> bool:
        """Make all in the queue durable without a batch; False where that cannot be."""
        fresh: list[Put] = []
        for item in reversed(self.queue):
            if not isinstance(item, Put):  # who waits there waits for a batch
                return False
            if ahead.holds(item):  # and so all before it
                break
            fresh.append(item)
        return ahead.write(fresh[::-1])

    def take(self) -> None:
        """Move the queue to `writing`."""
        for item in self.queue:
            if isinstance(item, _Promise):
                self._promises.append((len(self.writing), item))
            else:
                self.writing.append(item)
        self.queue.clear()

    def settle(self, written: Written) -> None:
        """Forget what is written, and keep the promises about it."""
        for behind, promise in self._promises:
            if behind <= written.done:
                promise.keep(
                    not any(behind - promise.entries <= place < behind for place in written.bad)
                )
        if not written.failure:
            self._promises.clear()
        del self.writing[: written.done]
        self.caught_up += written.done - len(written.bad)
        self.lost += len(written.bad)

    def break_promises(self) -> None:
        """An outage begins, or goes on: nobody is to wait any longer."""
        for _, promise in self._promises:
            promise.keep(False)
        self._promises.clear()
        for item in self.queue:
            if isinstance(item, _Promise):
                item.keep(False)
        self.queue = deque(item for item in self.queue if not isinstance(item, _Promise))

    def make_room(self) -> None:
        """Drop what is worth least: chatter, then the details of turns; the rest only to save the
        memory itself.
        """
        spare = len(self) - self._limit + self._limit // 100
        kinds: list[Callable[[_Item], bool]] = [_is_chatter, _is_detail]
        if len(self.queue) > 2 * self._limit:
            kinds.append(lambda _: True)
        for droppable in kinds:
            kept: deque[_Item] = deque()
            for item in self.queue:
                if spare > 0 and not _is_promised(item) and droppable(item):
                    spare -= 1
                    self.lost += 1
                else:
                    kept.append(item)
            self.queue = kept
        # Where little could be dropped, the next look is worth its time only after more has come.
        self.full = max(self._limit, len(self) + self._limit // 100)

    def recover(self) -> None:
        """An outage is over."""
        self.full = self._limit

    def unsaved(self) -> int:
        """How many entries would be lost if the process ended now."""
        return sum(not _is_promised(item) for item in (*self.writing, *self.queue))


def _is_promised(item: _Item) -> bool:
    """Whether it was written ahead, for somebody who waited; the next start applies it."""
    return isinstance(item, Put) and item.number > 0


def _is_chatter(item: _Item) -> bool:
    """Whether it was said to somebody else than the bot."""
    return (
        isinstance(item, Put) and isinstance(item.entry, MessageObserved) and item.entry.overheard
    )


def _is_detail(item: _Item) -> bool:
    """Whether the round of the closed turn will repeat it."""
    return isinstance(item, Put) and isinstance(
        item.entry, StepFinished | ToolStarted | ToolFinished
    )
