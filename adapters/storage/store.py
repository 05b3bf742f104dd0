"""The `Store` port on an SQL database: a task and a thread for writing, two threads for reading."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace
from sqlalchemy import Connection

from adapters.storage.ahead import batches_for
from adapters.storage.batches import EntryBatches
from adapters.storage.claim import Away, JournalTaken, SelfCheck
from adapters.storage.database import READERS, Database, Migrate, describe_error
from adapters.storage.erasure import SqlErasing
from adapters.storage.notices import DAMAGED, MEND
from adapters.storage.queries import conversations, unfinished
from adapters.storage.reading import (
    ConsoleReader,
    Reader,
    SqlConsoleQueries,
    SqlJobs,
    SqlJournalQueries,
    SqlMemories,
    reads,
)
from adapters.storage.retention import Retention, add_up
from adapters.storage.writer import Writer
from bot.core.conversation import Conversation
from bot.core.journal import (
    Entry,
    KnownLine,
    MessageErased,
    MessageObserved,
    MessageOverheard,
    Recovery,
    Remembered,
)
from bot.core.language import Bilingual, NotifyOwners
from bot.core.memories import MemoryKept
from bot.core.other_bots import EVERY_ACCOUNT, AccountScope
from frostagent.types.ports import Clock

if TYPE_CHECKING:  # clusters only
    from adapters.storage.leases import Lease

WATCH = 5.0  # seconds between two checks that the journal is there and ours
SELF_CHECK = 2.0  # seconds after the start
FIRST_SWEEP, SWEEPS = 60.0, 3600.0  # seconds after the start, and between sweeps
AGAIN = 0.2  # seconds between two attempts during an outage
BETWEEN = 0.05  # seconds between two batches of a sweep

NOTED = frozenset({MessageObserved, MessageOverheard, MemoryKept, MessageErased})
"""The entries that update the store's own memory."""

logger = logging.getLogger(__name__)


class SqlStore:
    """The journal. Entries go through the writer; reads see what was put before."""

    def __init__(
        self,
        database: Database,
        writer: Writer,
        batches: EntryBatches,
        *,
        writing: Executor,
        reading: Executor,
        pages: Executor,
        clock: Clock,
        scope: AccountScope = EVERY_ACCOUNT,
    ) -> None:
        self.scope = scope
        self._database = database
        self._writer = writer
        self._batches = batches
        self._writing = writing
        self._clock = clock
        # Conversations with entries of earlier processes, and those known to this process. Nothing
        # is read for others.
        self._with_past: set[Conversation] | None = None  # None until read
        self._met: set[Conversation] = set()
        self.reader = Reader(database, reading, writer=writer, batches=batches)
        self.memories = SqlMemories(self.reader, clock)
        self.jobs = SqlJobs(self.reader)
        self.books = SqlJournalQueries(self.reader, scope)
        self.shown = SqlConsoleQueries(ConsoleReader(database, pages))
        self.erasing = SqlErasing(
            database=database,
            batches=batches,
            writing=writing,
            commit=writer.commit,
            now=clock.now,
            scope=scope,
        )
        self.write_by = batches.write_by
        self._opened, self._recalls = clock.now(), 0
        self._is_untouched = True  # nothing was put: all unfinished work is an earlier process's

    def put(self, *entries: Entry) -> None:
        """Take entries; they are durable within 100 ms. Never waits, never raises."""
        self._note(entries)
        self._writer.put(*entries)

    def _note(self, entries: tuple[Entry, ...]) -> None:
        self._is_untouched = False
        if NOTED.isdisjoint(map(type, entries)):  # the usual case
            return
        for entry in entries:
            match entry:
                case (
                    MessageObserved(message=message, overheard=True)
                    | MessageOverheard(message=message)
                ):
                    self._met.add(message.conversation)
                case MemoryKept(memory=memory):
                    self.memories.note(memory)
                case MessageErased():
                    self._recalls += 1
                case _:
                    pass

    async def commit(self, *entries: Entry) -> bool:
        """Take entries and wait until these and all earlier ones are durable. Returns False if that
        cannot be promised; with a lease it waits instead, because other workers could repeat what
        is only in memory.
        """
        if entries:
            self._note(entries)
        kept = await self._writer.commit(*entries)
        while self._database.is_leased and not kept:
            await self._clock.sleep(AGAIN)
            kept = await self._writer.commit()
        return kept

    async def remember(self, conversation: Conversation) -> Remembered | None:
        """The conversation's memory for its next prompt; None if it cannot be read."""
        is_new = conversation not in self._met
        self._met.add(conversation)
        if is_new and self._with_past is not None and conversation not in self._with_past:
            return Remembered()
        return await self.reader.read(conversations.remember, conversation)

    find = reads(conversations.find)
    search = reads(conversations.search)
    spoken = reads(unfinished.spoken)

    async def heard(
        self, conversation: Conversation, message_ids: Collection[str]
    ) -> set[str] | None:
        """Which of these messages were received there or sent from here; None if unknown."""
        if not await self._writer.commit():  # messages waiting to be written count too
            return None
        return await self.reader.read(conversations.heard, conversation, message_ids)

    async def latest(self, conversation: Conversation) -> tuple[KnownLine, ...] | None:
        """The latest messages received there or sent from here; None if unknown."""
        if not await self._writer.commit():
            return None
        return await self.reader.read(conversations.latest, conversation)

    async def described(self, digest: str) -> str:
        """The description of an image by its digest; empty if unknown."""
        return await self.reader.read(conversations.described, digest) or ""

    async def recover(self) -> Recovery | None:
        """Return the work left unfinished before anything was put. None if it cannot be read or
        nothing can be written: settling it then would be repeated at the next start.
        """
        now, before = self._clock.now(), math.inf if self._is_untouched else self._opened

        def recover(connection: Connection) -> Recovery:
            recovery = unfinished.recover(connection, now, before)
            recovery = unfinished.of_scope(self.scope, recovery)
            since, restored = now - unfinished.SEEN, self._database.restored_at()
            whole = not self._database.was_put_aside(since) and restored < since
            return replace(recovery, whole=whole, restored=restored)

        while True:
            # During an outage, a read lacks what an earlier process wrote ahead and this one has in
            # memory, and the outage may end before the read does.
            if not await self._writer.commit():
                return None
            recalls = self._recalls
            self._with_past = await self.reader.peek(conversations.conversations)
            recovery = await self.reader.peek(recover)
            if recalls == self._recalls:  # otherwise the result may contain recalled text
                return None if self._writer.in_trouble else recovery

    def restored_at(self) -> float:
        """When a backup was put back last, in seconds since 1970; 0 if never."""
        return self._database.restored_at()

    def state(self) -> Mapping[str, Any]:
        """Its place, whether it cannot be written now, and the number of entries in memory."""
        return {
            "place": self._database.place,
            "in_trouble": self._writer.in_trouble,
            "waiting": self._writer.waiting,
        }

    async def tidy(self, retention: Retention) -> None:
        """Add up past days and delete surplus rows, for ever, in batches between writes."""
        pause = FIRST_SWEEP
        while True:
            await self._clock.sleep(pause)
            pause = SWEEPS
            now = self._clock.now()
            surplus = await self.reader.read(retention.surplus, now=now) or 0.0
            works = partial(add_up, now=now), partial(retention.sweep, now=now, surplus=surplus)
            try:
                for work in works:
                    while await asyncio.get_running_loop().run_in_executor(
                        self._writing, self._batches.run, work
                    ):
                        await self._clock.sleep(BETWEEN)
            except Exception as error:
                logger.info("old rows could not be deleted this time: %s", describe_error(error))
                logger.debug("deleting failed", exc_info=True)

    async def watch(self, every: float) -> None:
        """Check regularly that the journal is usable and still ours, even without writes."""
        while True:
            await self._clock.sleep(every)
            self._writer.retry()


@asynccontextmanager
async def open_store(
    url: str,
    *,
    keep_days: int,
    keep_messages: int,
    clock: Clock,
    trouble: NotifyOwners,
    migrate: Migrate,
    ousted: Callable[[JournalTaken], None] = lambda _: None,
    lease: Lease | None = None,
    scope: AccountScope = EVERY_ACCOUNT,
) -> AsyncIterator[SqlStore]:
    """Open the store of a STORE_URL while the block runs; at its end, everything put is written.

    If the database cannot be used now, that is reported to `trouble`, and the store works from
    memory until it can. Raises ConfigError if it never can: an invalid URL, a missing driver, a
    newer schema, a journal of another process (`JournalTaken`; if that shows later, `ousted` is
    called first). With a `lease`, other processes may have it too (PostgreSQL): it has its `scope`
    while it renews the lease, and waits through outages; if it cannot be reached at the start, it
    raises `Away`. `migrate` is `adapters.storage.migrate`, imported on use, because Alembic is
    large and rarely needed.
    """
    loop = asyncio.get_running_loop()

    def tell(line: Bilingual) -> None:  # called in a thread
        loop.call_soon_threadsafe(trouble, line)

    database = Database(url, migrate=migrate, owner=True, lease=lease, tell=tell)
    batches = batches_for(database, stamp=partial(_stamp, clock))
    with (
        ThreadPoolExecutor(1, "store-writer") as thread,
        ThreadPoolExecutor(READERS, "store-reader") as threads,
        ThreadPoolExecutor(1, "store-shown") as thread_shown,
    ):
        writer = Writer(
            batches=batches,
            thread=thread,
            clock=clock,
            trouble=trouble,
            place=database.place,
            ousted=ousted,
        )
        store = SqlStore(
            database,
            writer,
            batches,
            writing=thread,
            reading=threads,
            pages=thread_shown,
            clock=clock,
            scope=scope,
        )
        try:
            if reason := await loop.run_in_executor(thread, batches.open):
                await _begin_in_trouble(writer, reason, database)
            beside = [_check_itself(database, trouble, clock)]
            beside.append(store.watch(WATCH if lease is None else lease.renewals))
            if scope.is_first:
                beside.append(store.tidy(Retention(keep_days, keep_messages)))
            async with _at_work(writer, *beside):
                yield store
        finally:
            await loop.run_in_executor(thread, batches.end)
            await loop.run_in_executor(threads, database.close)
            await loop.run_in_executor(threads, database.release)


async def _begin_in_trouble(writer: Writer, reason: str, database: Database) -> None:
    """Report it; after a damaged file was moved away, begin a new one at once. Raises Away if
    others may have the journal.
    """
    if database.is_leased:
        raise Away(database.place, reason)
    writer.fail(reason)
    if _is_gone(database):
        await writer.begin_anew()


def _is_gone(database: Database) -> bool:
    try:
        return database.file is not None and not database.file.exists()
    except OSError:  # the folder cannot be read
        return False


@asynccontextmanager
async def _at_work(writer: Writer, *beside: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Run the writer and these tasks within the block; at its end, write everything."""
    async with asyncio.TaskGroup() as group:
        writing = group.create_task(writer.run())
        tasks = [group.create_task(work) for work in beside]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await writer.close(writing)


async def _check_itself(database: Database, trouble: NotifyOwners, clock: Clock) -> None:
    """If the previous process was killed, have SQLite check its file in the background."""
    await clock.sleep(SELF_CHECK)
    file = database.file
    while file is not None and not database.ready:
        await clock.sleep(SELF_CHECK)
    if file is None or not database.was_killed:
        return
    check = SelfCheck(file)
    with ThreadPoolExecutor(1, "store-check") as thread:
        try:
            words = await asyncio.get_running_loop().run_in_executor(thread, check.run)
        finally:
            check.stop()
    if words:
        trouble(DAMAGED.fill(file=file, what=words, fix=MEND))
    else:
        logger.info(
            "the last process was killed: the journal was checked, and nothing is wrong with it"
        )


def _stamp(clock: Clock) -> str:
    """The time as part of a file name."""
    return time.strftime("%Y%m%d-%H%M%S", time.localtime(clock.now()))
