"""Decides when the journal is written: at once if a caller waits (ahead of its batch if possible,
else as a batch), otherwise within 50 ms; under load up to 40 ms later, in fewer and larger batches.
Handles outages.

Invariants: entries are written in the order they were put. No caller waits during an outage:
entries are kept in memory, up to a limit, and written as soon as possible. Once a batch of an
outage is written, commits wait again, so that a process that dies has said nothing that depends on
an unwritten entry. Each outage is reported once, and so is its end.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from typing import TypeAlias, cast

from msgspec import Struct

from adapters.storage.batches import EntryBatches, Put, Written
from adapters.storage.claim import JournalTaken
from adapters.storage.notices import AGAIN, CANNOT, LOST
from bot.core.journal import Entry, MessageObserved
from bot.core.language import NotifyOwners
from frostagent.types.ports import Clock
from frostagent.types.runs import StepFinished, ToolFinished, ToolStarted


class _Promise(Struct, frozen=True):
    """A caller waits for the last `entries` before this place in the queue."""

    entries: int
    kept: asyncio.Future[bool]

    def keep(self, word: bool) -> None:
        if not self.kept.done():  # the caller may be cancelled
            self.kept.set_result(word)


_Item: TypeAlias = "Put | _Promise"


class Backlog:
    """`queue` was put; `writing` was taken from it and is not settled.

    `full` is the number of entries at which `make_room` is due, initially `limit`. `caught_up` and
    `lost` count entries since the last outage began.
    """

    def __init__(self, limit: int) -> None:
        self.queue: deque[_Item] = deque()
        self.writing: list[Put] = []
        self.full = limit
        self.caught_up = self.lost = 0
        self._limit = limit
        self._asked = 0  # promises in the queue
        # each with its position in `writing`
        self._promises: list[tuple[int, _Promise]] = []

    def __len__(self) -> int:
        return len(self.queue) + len(self.writing)

    def promise(self, entries: int) -> asyncio.Future[bool]:
        """Return a future: whether the last `entries` put until now were written."""
        promise = _Promise(entries, asyncio.get_running_loop().create_future())
        self.queue.append(promise)
        self._asked += 1
        return promise.kept

    def write_at_once(self, batches: EntryBatches) -> bool:
        """Make the whole queue durable without a batch. Returns False if that is not possible."""
        if self._asked:  # earlier callers wait for a batch
            return False
        return batches.write_at_once(cast("Sequence[Put]", self.queue))

    def take(self) -> None:
        self._asked = 0
        for item in self.queue:
            if isinstance(item, _Promise):
                self._promises.append((len(self.writing), item))
            else:
                self.writing.append(item)
        self.queue.clear()

    def settle(self, written: Written) -> None:
        """Remove what is written, and resolve the promises about it."""
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
        """An outage begins or continues: resolve all promises with False."""
        for _, promise in self._promises:
            promise.keep(False)
        self._promises.clear()
        for item in self.queue:
            if isinstance(item, _Promise):
                item.keep(False)
        self._asked = 0
        self.queue = deque(item for item in self.queue if not isinstance(item, _Promise))

    def make_room(self) -> None:
        """Drop the least valuable entries: overheard messages, then details of turns; others only
        to protect the memory.
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
        # If little could be dropped, retry only after more has arrived.
        self.full = max(self._limit, len(self) + self._limit // 100)

    def recover(self) -> None:
        self.full = self._limit

    def unsaved(self) -> int:
        """Number of entries that would be lost if the process ended now."""
        return sum(not _is_promised(item) for item in (*self.writing, *self.queue))


def _is_promised(item: _Item) -> bool:
    """Whether it was written ahead for a waiting caller."""
    return isinstance(item, Put) and item.number > 0


def _is_chatter(item: _Item) -> bool:
    """Whether it is an overheard message."""
    return (
        isinstance(item, Put) and isinstance(item.entry, MessageObserved) and item.entry.overheard
    )


def _is_detail(item: _Item) -> bool:
    """Whether the round of the closed turn will contain it."""
    return isinstance(item, Put) and isinstance(
        item.entry, StepFinished | ToolStarted | ToolFinished
    )


GATHER = 0.05  # seconds that entries without a waiting caller gather
ENOUGH = 256  # entries written without gathering more, except under load
# Fewer and larger batches are cheaper: each starts with a cold thread and writes each index page
# once. So after a batch of MANY entries, the next waits until the loop brings no more. Measured
# with 200 conversations: half as many batches, an eighth of their thread's time.
MANY = 128  # entries
BUSY, LONGEST = 0.5, 0.04  # seconds such a phase lasts, and the longest wait in it
QUIET = 4  # loop iterations without new entries
LIMIT = 20_000  # entries kept in memory
PATIENCE = 5.0  # seconds after which an unfinished write counts as an outage
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 2.0  # seconds between two attempts
CLOSING = 5.0  # seconds to write what is left at the end


class Writer:
    """The queue before the database. `run` is its one task; only the writing itself runs in a
    thread.

    `trouble` receives each outage and its end, for the operator; `place` names the database there.
    `ousted` is called if another process has taken the journal; then the task ends with the same
    error.
    """

    def __init__(
        self,
        *,
        batches: EntryBatches,
        thread: Executor,
        clock: Clock,
        trouble: NotifyOwners,
        place: str,
        ousted: Callable[[JournalTaken], None] = lambda _: None,
        limit: int = LIMIT,
    ) -> None:
        self._batches = batches
        self._thread = thread
        self._clock = clock
        self._tell = trouble
        self._place = place
        self._ousted = ousted
        self._backlog = Backlog(limit)
        self._due = asyncio.Event()
        self._alarm: asyncio.TimerHandle | None = None
        self._busy = self._trouble = self._catching_up = False
        self._busy_until = 0.0  # monotonic
        self._ending = False

    # --- putting
    # ------------------------------------------------------------------------------------

    @property
    def in_trouble(self) -> bool:
        """Whether nothing can be promised at the moment."""
        return self._trouble

    @property
    def waiting(self) -> int:
        return len(self._backlog)

    def put(self, *entries: Entry) -> None:
        """Take entries; they are written soon."""
        now, backlog = self._clock.now(), self._backlog
        for entry in entries:
            backlog.queue.append(Put(entry, now))
        waiting = len(backlog.queue)
        if waiting + len(backlog.writing) > backlog.full:
            self.fail(f"it is too slow, {waiting} entries wait")
            backlog.make_room()
        if waiting >= ENOUGH:
            self._due.set()
        elif self._alarm is None:
            self._alarm = asyncio.get_running_loop().call_later(GATHER, self._due.set)

    async def commit(self, *entries: Entry) -> bool:
        """Take entries and wait until these and all earlier ones are durable. Returns False if that
        cannot be promised.

        Without entries, wait until everything put is in its tables and can be read; this always
        takes a batch.
        """
        if entries:
            self.put(*entries)
        if self._trouble and not self._catching_up:
            return False
        backlog = self._backlog
        if not backlog.queue and not backlog.writing:
            return True
        # never beside a batch, whose outcome is unknown yet
        if entries and not self._busy and backlog.write_at_once(self._batches):
            return True
        kept = backlog.promise(len(entries))
        self._due.set()
        return await kept

    def retry(self) -> None:
        """Check the database, even without entries."""
        self._due.set()

    def fail(self, reason: str) -> None:
        """Begin an outage, unless there is one: report it, and release waiting callers."""
        if self._trouble and not self._catching_up:
            return
        self._catching_up = False
        self._backlog.break_promises()
        if self._trouble:  # the outage had not ended
            return
        self._trouble = True
        self._backlog.caught_up = self._backlog.lost = 0
        meanwhile = self._batches.meanwhile
        self._tell(CANNOT.fill(place=self._place, reason=reason, meanwhile=meanwhile))

    # --- the task ---------------------------------------------------------------------------------

    async def begin_anew(self) -> None:
        """Try once before anything is put: a damaged file was just moved away."""
        if not (await self._attempt()).failure:
            self._recovered()

    async def run(self) -> None:
        """Write entries until `close`."""
        if self._trouble:
            await self._write()
        while not self._ending or (self._backlog.queue and not self._backlog.writing):
            if not self._ending:
                await self._due.wait()
            await self._write()

    async def close(self, task: asyncio.Task[None]) -> None:
        """Write what is left and end `task`, which is `run`. What cannot be written any more is
        reported as lost.
        """
        self._ending = True
        self._due.set()
        await asyncio.wait({task}, timeout=CLOSING)
        task.cancel()
        if lost := self._backlog.unsaved():
            self._tell(LOST.fill(place=self._place, lost=lost))

    async def _write(self) -> None:
        """Write the whole queue, with retries; at the end of the process only once."""
        self._busy = True
        try:
            await self._gather()
            await self._write_all()
        finally:
            self._busy = False

    async def _gather(self) -> None:
        """Under load, wait until the loop brings no more entries."""
        now = self._clock.monotonic()
        latest, size, quiet = min(now + LONGEST, self._busy_until), len(self._backlog.queue), 0
        while now < latest and quiet < QUIET and not self._ending:
            await self._clock.sleep(0)
            quiet = quiet + 1 if len(self._backlog.queue) == size else 0
            now, size = self._clock.monotonic(), len(self._backlog.queue)

    async def _write_all(self) -> None:
        self._due.clear()
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        self._backlog.take()
        many = len(self._backlog.writing) >= MANY
        pause = FIRST_PAUSE
        while True:
            written = await self._attempt()
            self._backlog.settle(written)
            if not written.failure:
                break
            self.fail(written.failure)
            if self._ending:
                return
            await self._clock.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)
        if many:
            self._busy_until = self._clock.monotonic() + BUSY
        if self._trouble and self._backlog.queue and not self._catching_up:
            # What has gathered meanwhile is the next batch, and the last of the outage.
            self._catching_up = True
            self._due.set()
        elif self._trouble:
            self._recovered()

    async def _attempt(self) -> Written:
        loop = asyncio.get_running_loop()
        alarm = loop.call_later(PATIENCE, self.fail, f"no answer for {PATIENCE:g} s")
        try:
            writing = self._backlog.writing
            return await loop.run_in_executor(self._thread, self._batches.write, writing)
        except JournalTaken as error:
            self._ousted(error)
            raise
        finally:
            alarm.cancel()

    def _recovered(self) -> None:
        self._trouble = self._catching_up = False
        self._backlog.recover()
        done, lost = self._backlog.caught_up, self._backlog.lost
        self._tell(AGAIN.fill(place=self._place, caught_up=done, lost=lost))
