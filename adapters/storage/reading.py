"""Runs the functions of `queries/` in read-only threads, and implements the ports that they answer.

A new query is a function there and a line here.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Coroutine, Mapping
from concurrent.futures import Executor
from typing import Any, Concatenate, ParamSpec, TypeVar

from sqlalchemy import Connection

from adapters.storage.batches import EntryBatches
from adapters.storage.database import Blame, Database, describe_error, fault
from adapters.storage.queries.conversations import (
    audited,
    busiest,
    chat,
    chats,
    choices,
    groups,
    settings,
    settings_of,
)
from adapters.storage.queries.jobs import due, fate, in_progress, latest_number, next_wake, said_as
from adapters.storage.queries.jobs import listed as listed_jobs
from adapters.storage.queries.memories import MOST_SHELVES, listed, recall, shelves
from adapters.storage.queries.scheduled import count_jobs, scheduled
from adapters.storage.queries.sums import (
    costs,
    day,
    day_counts,
    ends,
    spent,
    taken,
    tool_uses,
)
from adapters.storage.queries.turns import latest_payers, rows, silence, story, trace
from adapters.storage.rows import EVERYWHERE, shelf_of, shelves_of
from adapters.storage.writer import Writer
from bot.core.console_views import CostSum, TurnQuery, TurnRows
from bot.core.conversation import Conversation
from bot.core.memories import StoredFact
from bot.core.other_bots import AccountScope
from bot.core.query_results import DayCounts
from frostagent.types.ports import Clock

TIMEOUT, TIMEOUT_IN_TROUBLE = 10.0, 1.0  # seconds; the second while the database cannot be written
CONSOLE_TIMEOUT = 2.0  # seconds for what a page reads

P = ParamSpec("P")
T = TypeVar("T")

logger = logging.getLogger(__name__)


class Reader:
    """Runs queries, each on one state of everything committed."""

    def __init__(
        self, database: Database, threads: Executor, *, writer: Writer, batches: EntryBatches
    ) -> None:
        self._database = database
        self._threads = threads
        self._writer = writer
        self._batches = batches

    async def read(
        self,
        query: Callable[Concatenate[Connection, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T | None:
        """Return the result once everything put is written; during an outage, of what was written.
        None if the journal cannot be read in time.
        """
        await self._writer.commit()
        return await self.peek(query, *args, **kwargs)

    async def peek(
        self,
        query: Callable[Concatenate[Connection, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T | None:
        """Like `read`, of what is already written."""
        if not self._database.ready:
            return None

        def run() -> T:
            with self._database.reading() as connection:
                return query(connection, *args, **kwargs)

        try:
            async with asyncio.timeout(TIMEOUT_IN_TROUBLE if self._writer.in_trouble else TIMEOUT):
                return await asyncio.get_running_loop().run_in_executor(self._threads, run)
        except Exception as error:
            logger.warning("the journal cannot be read: %s", describe_error(error))
            logger.debug("reading failed", exc_info=True)
            if fault(error) is Blame.DAMAGE:
                self._batches.condemn(describe_error(error))
                self._writer.retry()
            return None


class ConsoleReader:
    """Runs queries for pages in a separate thread, so that other readers do not wait for them.
    Results may lack entries that are being written.
    """

    def __init__(self, database: Database, thread: Executor) -> None:
        self._database = database
        self._thread = thread
        # Compiled statements of the first page, which is opened most. Keeping those of all pages
        # would take 1.2 MiB; without it a page takes 2 to 8 ms more. It saves the first page 7 to
        # 12 ms.
        self._first_page = dict[Any, Any]()

    async def read(
        self,
        query: Callable[Concatenate[Connection, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T | None:
        """Return the result, or None if there is none in time."""
        return await self._run(lambda connection: query(connection, *args, **kwargs), None)

    async def read_for_first_page(
        self,
        query: Callable[Concatenate[Connection, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T | None:
        """Like `read`, but keeps the compiled statements."""
        kept = self._first_page
        return await self._run(lambda connection: query(connection, *args, **kwargs), kept)

    async def _run(self, query: Callable[[Connection], T], kept: dict[Any, Any] | None) -> T | None:
        if not self._database.ready:
            return None
        drivers: list[Any] = []

        def run() -> T:
            with self._database.reading() as connection:
                drivers.append(connection.connection.driver_connection)
                try:
                    return query(connection.execution_options(compiled_cache=kept))
                finally:
                    _shrink(connection)

        try:
            async with asyncio.timeout(CONSOLE_TIMEOUT):
                return await asyncio.get_running_loop().run_in_executor(self._thread, run)
        except TimeoutError:
            logger.warning("the console has read for %g s, and gave up", CONSOLE_TIMEOUT)
            for driver in drivers:  # else the thread goes on, and the next read waits for it
                (driver.interrupt if hasattr(driver, "interrupt") else driver.cancel)()
        except Exception as error:
            logger.warning("the console could not read the journal: %s", describe_error(error))
            logger.debug("reading failed", exc_info=True)
        return None


def _shrink(connection: Connection) -> None:
    """Release the pages read, because the next read may be days away."""
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql("PRAGMA shrink_memory").close()


def reads(
    query: Callable[Concatenate[Connection, P], T],
) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, T | None]]:
    """Make a method that runs this query with its object's `reader`."""

    async def read(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> T | None:
        found: T | None = await self.reader.read(query, *args, **kwargs)
        return found

    read.__doc__ = query.__doc__
    return read


class SqlJournalQueries:
    """The `JournalQueries` and `Choices` ports; settings only of conversations in `scope`."""

    def __init__(self, reader: Reader, scope: AccountScope) -> None:
        self.reader = reader
        self._scope = scope

    usage = reads(spent)
    taken = reads(taken)
    latest_payers = reads(latest_payers)
    day = reads(day)
    audit = reads(audited)
    scheduled = reads(scheduled)
    settings_of = reads(settings_of)
    places = reads(busiest)
    groups = reads(groups)
    story = reads(story)

    async def choices(self) -> Mapping[Conversation, str] | None:
        """The persona chosen by command, by conversation."""
        return self._ours(await self.reader.read(choices))

    async def settings(self, name: str) -> Mapping[Conversation, str] | None:
        return self._ours(await self.reader.read(settings, name))

    async def count_jobs(self) -> int | None:
        """The number of jobs of our accounts that have not ended, without those just made."""
        found = await self.reader.peek(count_jobs)
        if found is None:
            return None
        return sum(number for account, number in found.items() if self._scope.has(account))

    def _ours(self, found: Mapping[Conversation, str] | None) -> Mapping[Conversation, str] | None:
        if found is None:
            return None
        return {where: value for where, value in found.items() if self._scope.has_place(where)}


class SqlConsoleQueries:
    def __init__(self, reader: ConsoleReader) -> None:
        self.reader = reader

    trace = reads(trace)
    silence = reads(silence)
    chats = reads(chats)
    chat = reads(chat)
    tools = reads(tool_uses)

    async def rows(self, query: TurnQuery) -> TurnRows | None:
        reader = self.reader
        read = reader.read_for_first_page if query == TurnQuery() else reader.read
        return await read(rows, query)

    async def day(self, *, since: float, until: float) -> DayCounts | None:
        return await self.reader.read_for_first_page(day_counts, since, until)

    async def ends(self, *, since: float) -> tuple[int, int] | None:
        """The number of ended runs, and of failed ones."""
        return await self.reader.read_for_first_page(ends, since)

    async def costs(self, *, since: float, by: str) -> tuple[CostSum, ...] | None:
        reader = self.reader
        read = reader.read_for_first_page if by == "day" else reader.read
        return await read(costs, since, by)


class SqlMemories:
    def __init__(self, reader: Reader, clock: Clock) -> None:
        self._reader = reader
        self._clock = clock
        self._shelves: set[str] | None = None  # the non-empty ones; None until read
        self._new: set[str] = set()

    def note(self, memory: StoredFact) -> None:
        """A fact was put: its shelves are no longer empty."""
        self._new.update(shelves_of(memory))

    async def recall(
        self, where: Conversation, asker: int, terms: Collection[str]
    ) -> tuple[StoredFact, ...]:
        """The facts with some of these words that may be shown to the asker there, best first."""
        if not terms:
            return ()
        now = self._clock.now()
        return await self._reader.peek(recall, where, asker, terms, now) or ()

    async def has_any(self, where: Conversation, asker: int) -> bool:
        """Whether there may be facts for the asker there. Usually there are none: no read."""
        if self._shelves is None:
            self._shelves = await self._reader.peek(shelves)
        asked = {str(where), shelf_of(asker), EVERYWHERE}
        if self._shelves is None or len(self._shelves) >= MOST_SHELVES:
            return True
        return not asked.isdisjoint(self._shelves) or not asked.isdisjoint(self._new)

    async def listed(
        self, *, scope: Conversation | None = None, subject: int | None = None
    ) -> tuple[StoredFact, ...] | None:
        """The facts of a conversation or person, or both, latest first; None if unreadable."""
        return await self._reader.read(listed, scope, subject, self._clock.now())


class SqlJobs:
    """Fits `JobQueries`."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader

    next_wake = reads(next_wake)
    due = reads(due)
    fate = reads(fate)
    listed = reads(listed_jobs)
    in_progress = reads(in_progress)
    said_as = reads(said_as)
    latest_number = reads(latest_number)
