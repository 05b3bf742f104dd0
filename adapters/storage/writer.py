"""When the journal is written: at once where somebody waits for it (`ahead.py` where it can be,
else in a batch), else within 50 ms; in a busy time up to 40 ms later, in fewer and larger batches;
and what if it cannot be.

Invariants: entries are written in the order they were put. Nobody waits for a store in trouble:
what is put then is kept in memory, up to a limit, and written as soon as that is possible; each
outage is told once, and its end once.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import TypeAlias

from adapters.storage.ahead import Ahead, Put
from adapters.storage.batches import Batches, Written
from adapters.storage.claim import Taken
from bot.domain.journal import CallFinished, CallStarted, Entry, MessageObserved, StepTaken
from bot.domain.ports import Clock

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


@dataclass(frozen=True, slots=True)
class _Promise:
    """Somebody waits for the last `entries` before this place in the queue."""

    entries: int
    kept: asyncio.Future[bool]

    def keep(self, word: bool) -> None:
        if not self.kept.done():  # who waited may have been cancelled
            self.kept.set_result(word)


_Item: TypeAlias = "Put | _Promise"


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
        batches: Batches,
        thread: Executor,
        clock: Clock,
        trouble: Callable[[str], None],
        place: str,
        ousted: Callable[[Taken], None] = lambda _: None,
        ahead: Ahead | None = None,
        limit: int = LIMIT,
    ) -> None:
        self._batches = batches
        self._ahead = ahead
        self._thread = thread
        self._clock = clock
        self._tell = trouble
        self._place = place
        self._ousted = ousted
        self._limit = self._full = limit
        self._queue: deque[_Item] = deque()
        self._due = asyncio.Event()
        self._alarm: asyncio.TimerHandle | None = None
        self._writing: list[Put] = []  # taken from the queue, not settled
        self._promises: list[
            tuple[int, _Promise]
        ] = []  # each with the number of those entries it stands behind
        self._busy = self._trouble = self._catching_up = False
        self._busy_until = 0.0  # by the monotonic clock
        self._caught_up = self._lost = 0
        self._ending = False

    # --- what is put ------------------------------------------------------------------------------

    @property
    def in_trouble(self) -> bool:
        """Whether nothing can be promised at the moment."""
        return self._trouble

    @property
    def waiting(self) -> int:
        """Entries that are not written yet."""
        return len(self._queue) + len(self._writing)

    def put(self, *entries: Entry) -> None:
        """Take entries; they are written soon."""
        now = self._clock.now()
        for entry in entries:
            self._queue.append(Put(entry, now))
        waiting = len(self._queue)
        if waiting + len(self._writing) > self._full:
            self._make_room()
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
        if self._trouble:
            return False
        if not self._queue and not self._writing:
            return True
        if entries and self._is_written_ahead():
            return True
        promise = _Promise(len(entries), asyncio.get_running_loop().create_future())
        self._queue.append(promise)
        self._due.set()
        return await promise.kept

    def _is_written_ahead(self) -> bool:
        """Whether all that waits is durable without a batch. Never beside one: what that will do is
        not known yet.
        """
        if self._ahead is None or self._busy:
            return False
        fresh: list[Put] = []
        for item in reversed(self._queue):
            if not isinstance(item, Put):  # who waits there waits for a batch
                return False
            if self._ahead.holds(item):  # and so all before it
                break
            fresh.append(item)
        return self._ahead.write(fresh[::-1])

    def retry(self) -> None:
        """Try whether the database can be used, though there may be nothing to write."""
        self._due.set()

    def fail(self, reason: str) -> None:
        """Trouble begins, unless it already has: say so, and let nobody wait."""
        if self._trouble:
            return
        self._trouble = True
        self._caught_up = self._lost = 0
        for _, promise in self._promises:
            promise.keep(False)
        self._promises.clear()
        for item in self._queue:
            if isinstance(item, _Promise):
                item.keep(False)
        self._queue = deque(item for item in self._queue if not isinstance(item, _Promise))
        self._tell(
            f"The journal cannot be written ({self._place}: {reason}). The bot goes on from memory, and writes what"
            " it keeps there as soon as it can; if it ended before that, what it keeps there would be lost."
        )

    def _make_room(self) -> None:
        """Drop what is worth least: chatter, then the details of turns; the rest only to save the
        memory itself.
        """
        self.fail(f"it is too slow, {len(self._queue)} entries wait")
        spare = len(self._queue) + len(self._writing) - self._limit + self._limit // 100
        kinds: list[Callable[[_Item], bool]] = [_is_chatter, _is_detail]
        if len(self._queue) > 2 * self._limit:
            kinds.append(lambda _: True)
        for droppable in kinds:
            kept: deque[_Item] = deque()
            for item in self._queue:
                if spare > 0 and not _is_promised(item) and droppable(item):
                    spare -= 1
                    self._lost += 1
                else:
                    kept.append(item)
            self._queue = kept
        # Where little could be dropped, the next look is worth its time only after more has come.
        self._full = max(self._limit, len(self._queue) + len(self._writing) + self._limit // 100)

    # --- the task ---------------------------------------------------------------------------------

    async def run(self) -> None:
        """Write what is put, until `close`."""
        if self._trouble:
            await self._write()
        while not self._ending or (self._queue and not self._writing):
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
        # What was written ahead is applied at the next start.
        if left := sum(not _is_promised(item) for item in (*self._writing, *self._queue)):
            self._tell(
                f"The journal could not be written before the end ({self._place}): {left} entries are lost."
            )

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
        latest, size, quiet = min(now + LONGEST, self._busy_until), len(self._queue), 0
        while now < latest and quiet < QUIET and not self._ending:
            await self._clock.sleep(0)
            quiet = quiet + 1 if len(self._queue) == size else 0
            now, size = self._clock.monotonic(), len(self._queue)

    async def _write_all(self) -> None:
        self._take()
        many = len(self._writing) >= MANY
        pause = FIRST_PAUSE
        while True:
            written = await self._attempt()
            self._settle(written)
            if not written.failure:
                break
            self.fail(written.failure)
            self._catching_up = False
            if self._ending:
                return
            await self._clock.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)
        if many:
            self._busy_until = self._clock.monotonic() + BUSY
        if self._trouble and self._queue and not self._catching_up:
            self._catching_up = True
            self._due.set()  # what has gathered meanwhile is the next batch, and the last of the outage
        elif self._trouble:
            self._recovered()

    def _take(self) -> None:
        self._due.clear()
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        for item in self._queue:
            if isinstance(item, _Promise):
                self._promises.append((len(self._writing), item))
            else:
                self._writing.append(item)
        self._queue.clear()

    async def _attempt(self) -> Written:
        loop = asyncio.get_running_loop()
        alarm = loop.call_later(PATIENCE, self.fail, f"no answer for {PATIENCE:g} s")
        try:
            return await loop.run_in_executor(self._thread, self._batches.write, self._writing)
        except Taken as error:
            self._ousted(error)
            raise
        finally:
            alarm.cancel()

    def _settle(self, written: Written) -> None:
        for behind, promise in self._promises:
            if behind <= written.done:
                promise.keep(
                    not any(behind - promise.entries <= place < behind for place in written.bad)
                )
        if not written.failure:
            self._promises.clear()
        del self._writing[: written.done]
        self._caught_up += written.done - len(written.bad)
        self._lost += len(written.bad)

    def _recovered(self) -> None:
        self._trouble = self._catching_up = False
        self._full = self._limit
        self._tell(
            f"The journal is written again ({self._place}): {self._caught_up} entries caught up, {self._lost} lost."
        )


def _is_promised(item: _Item) -> bool:
    """What was written ahead, for somebody who waited."""
    return isinstance(item, Put) and item.number > 0


def _is_chatter(item: _Item) -> bool:
    """What nobody said to the bot."""
    return (
        not isinstance(item, _Promise)
        and isinstance(item.entry, MessageObserved)
        and item.entry.overheard
    )


def _is_detail(item: _Item) -> bool:
    """What the round of the closed turn will repeat."""
    return not isinstance(item, _Promise) and isinstance(
        item.entry, StepTaken | CallStarted | CallFinished
    )
