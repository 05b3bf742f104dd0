"""When the journal is written: at once where somebody waits for it (before its batch if the
database can do that, else in one), else within 50 ms; in a busy time up to 40 ms later, in fewer
and larger batches; and what if it cannot be.

Invariants: entries are written in the order they were put. Nobody waits for a store in trouble:
what is put then is kept in memory, up to a limit, and written as soon as that is possible. Once a
batch of an outage is written, who commits waits again: what has gathered is on its way, and
somebody who dies before it is there must not have said anything that it tells of. Each outage is
told once, and its end once.
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
        self._asked = 0  # promises in the queue
        # Each with the number of entries in `writing` it stands behind.
        self._promises: list[tuple[int, _Promise]] = []

    def __len__(self) -> int:
        return len(self.queue) + len(self.writing)

    def promise(self, entries: int) -> asyncio.Future[bool]:
        """Whether all that was put until now came to be written, of the last `entries` each."""
        promise = _Promise(entries, asyncio.get_running_loop().create_future())
        self.queue.append(promise)
        self._asked += 1
        return promise.kept

    def write_at_once(self, batches: EntryBatches) -> bool:
        """Make all in the queue durable without a batch; False where that cannot be."""
        if self._asked:  # who waits there waits for a batch
            return False
        return batches.write_at_once(cast("Sequence[Put]", self.queue))

    def take(self) -> None:
        """Move the queue to `writing`."""
        self._asked = 0
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
        self._asked = 0
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
    """Whether it was made durable before its batch, for somebody who waited."""
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


GATHER = 0.05  # seconds that entries nobody waits for may gather
ENOUGH = 256  # entries that are written without waiting for more, except in a busy time
# Fewer and larger batches cost less: each begins with a cold thread, and writes each page of an
# index once. So after a batch of so many entries the next ones wait until the loop brings nothing
# more. Measured at 200 conversations: half as many batches, an eighth of their thread's time.
MANY = 128  # entries
BUSY, LONGEST = 0.5, 0.04  # seconds such a time lasts, and the longest wait in it
QUIET = 4  # rounds of the loop that bring nothing
LIMIT = 20_000  # entries kept in memory
PATIENCE = 5.0  # seconds after which a write that has not ended counts as trouble
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 2.0  # seconds between two attempts
CLOSING = 5.0  # seconds for what is left at the end


class Writer:
    """The queue before the database. `run` is its one task; all but the writing itself happens in
    the event loop.

    `trouble` is told of every outage and of its end, in words for the operator; `place` says there
    which database. `ousted` is called where another process has the journal by now; the task ends
    then, with the same error.
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
        self._busy_until = 0.0  # by the monotonic clock
        self._ending = False

    # --- what is put ------------------------------------------------------------------------------

    @property
    def in_trouble(self) -> bool:
        """Whether nothing can be promised at the moment."""
        return self._trouble

    @property
    def waiting(self) -> int:
        """Entries that are not written yet."""
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
        """Take entries and wait until they and all before them are written; False where that cannot
        be promised.

        Without entries, until all that was put is in its tables, where it can be read: a batch
        always.
        """
        if entries:
            self.put(*entries)
        if self._trouble and not self._catching_up:
            return False
        backlog = self._backlog
        if not backlog.queue and not backlog.writing:
            return True
        # Never at once beside a batch: what that will do is not known yet.
        if entries and not self._busy and backlog.write_at_once(self._batches):
            return True
        kept = backlog.promise(len(entries))
        self._due.set()
        return await kept

    def retry(self) -> None:
        """Try whether the database can be used, though there may be nothing to write."""
        self._due.set()

    def fail(self, reason: str) -> None:
        """Trouble begins, unless it already has: say so, and let nobody wait."""
        if self._trouble and not self._catching_up:
            return
        self._catching_up = False
        self._backlog.break_promises()
        if self._trouble:  # it had not ended
            return
        self._trouble = True
        self._backlog.caught_up = self._backlog.lost = 0
        meanwhile = self._batches.meanwhile
        self._tell(CANNOT.fill(place=self._place, reason=reason, meanwhile=meanwhile))

    # --- the task ---------------------------------------------------------------------------------

    async def begin_anew(self) -> None:
        """Try once more before anything is put: a damaged file has just made room for a new one."""
        if not (await self._attempt()).failure:
            self._recovered()

    async def run(self) -> None:
        """Write what is put, until `close`."""
        if self._trouble:
            await self._write()
        while not self._ending or (self._backlog.queue and not self._backlog.writing):
            if not self._ending:
                await self._due.wait()
            await self._write()

    async def close(self, task: asyncio.Task[None]) -> None:
        """Write what is left and end `task`, which is `run`; what cannot be written any more is
        lost, and told.
        """
        self._ending = True
        self._due.set()
        await asyncio.wait({task}, timeout=CLOSING)
        task.cancel()
        if lost := self._backlog.unsaved():
            self._tell(LOST.fill(place=self._place, lost=lost))

    async def _write(self) -> None:
        """Everything in the queue, however often it must be tried; at the end of all things, once
        more.
        """
        self._busy = True
        try:
            await self._gather()
            await self._write_all()
        finally:
            self._busy = False

    async def _gather(self) -> None:
        """In a busy time, wait until the loop brings no more entries."""
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
