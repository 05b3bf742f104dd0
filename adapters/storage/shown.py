"""Reading the journal for the console, in a thread of its own: however long somebody looks, nobody
else waits. Blocks, but for `SqlShown`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor
from functools import reduce
from typing import Any, TypeVar

from msgspec.structs import replace
from sqlalchemy import Connection, func, select, text

from adapters.storage.books import story
from adapters.storage.chats import chat, chats, line
from adapters.storage.closed_days import midnight
from adapters.storage.database import Database
from adapters.storage.day_sums import day_counts
from adapters.storage.failures import words
from adapters.storage.moments import id_at, opened_between
from adapters.storage.outcomes import ending_of
from adapters.storage.reads import readable
from adapters.storage.tables import (
    IN_ERROR,
    PAYER,
    day_usage,
    messages,
    runs,
    speakers,
    turns,
    usage,
)
from adapters.storage.tool_costs import tool_costs
from adapters.storage.tool_uses import tools
from adapters.storage.traces import trace
from adapters.storage.turn_rows import TOKENS, rows, sum_of, sums_of, totals, turn_row
from bot.domain.books import DayCounts, UsageSum
from bot.domain.events import Conversation
from bot.domain.inspection import ToolUse
from bot.domain.run import Stop
from bot.domain.shown import (
    Chat,
    ChatRows,
    CostSum,
    Trace,
    TurnQuery,
    TurnRows,
    Unanswered,
)

DEADLINE = 2.0  # seconds for what a page reads
COSTS = 30  # of each kind, the dearest

T = TypeVar("T")

logger = logging.getLogger(__name__)


class SqlShown:
    """Fits `Showing`. What is on its way into the journal may not be told yet."""

    def __init__(self, database: Database, thread: Executor) -> None:
        self._database = database
        self._thread = thread
        self._first_page = dict[Any, Any]()  # what that one asks, compiled: it is looked at most

    async def rows(self, query: TurnQuery) -> TurnRows | None:
        """The latest that the query is about."""
        kept = self._first_page if query == TurnQuery() else None
        return await self._read(lambda connection: rows(connection, query), kept)

    async def trace(self, turn_id: str) -> tuple[Trace, ...] | None:
        """The turn of this id."""
        return await self._read(lambda connection: _trace(connection, turn_id))

    async def silence(self, where: Conversation, message_id: str) -> Unanswered | None:
        """A message that was not answered, and why."""
        return await self._read(
            lambda connection: Unanswered(
                story(connection, where, message_id), line(connection, where, message_id)
            )
        )

    async def chats(self, before: int) -> ChatRows | None:
        """The conversations before that message."""
        return await self._read(lambda connection: chats(connection, before))

    async def chat(self, where: Conversation, before: int) -> Chat | None:
        """The messages of one, before that message."""
        return await self._read(lambda connection: chat(connection, where, before))

    async def tools(self) -> tuple[ToolUse, ...] | None:
        """How the latest calls of tools went."""
        return await self._read(tools)

    async def day(self, *, since: float, until: float) -> DayCounts | None:
        """The sums of the time from then on, before `until`."""
        return await self._read(
            lambda connection: day_counts(connection, since, until), self._first_page
        )

    async def ends(self, *, since: float) -> tuple[int, int] | None:
        """How many runs ended, and how many of them failed."""
        return await self._read(lambda connection: ends(connection, since), self._first_page)

    async def costs(self, *, since: float, by: str) -> tuple[CostSum, ...] | None:
        """The sums taken since then."""
        kept = self._first_page if by == "day" else None
        return await self._read(lambda connection: costs(connection, since, by), kept)

    async def _read(
        self, query: Callable[[Connection], T], kept: dict[Any, Any] | None = None
    ) -> T | None:
        """The answer, or None where there is none in time. What was compiled for it is `kept`."""
        if not self._database.ready:
            return None
        drivers: list[Any] = []

        def read() -> T:
            with self._database.reading() as connection:
                drivers.append(connection.connection.driver_connection)
                try:
                    # All that pages ask, compiled, would take 1.2 MiB for as long as the bot runs:
                    # a page takes 2 to 8 ms more without, the first one, which asks most, 7 to 12.
                    return query(connection.execution_options(compiled_cache=kept))
                finally:
                    _shrink(connection)

        try:
            async with asyncio.timeout(DEADLINE):
                return await asyncio.get_running_loop().run_in_executor(self._thread, read)
        except TimeoutError:
            logger.warning("the console has read for %g s, and gave up", DEADLINE)
            for driver in drivers:  # else the thread goes on, and whoever asks next waits for it
                (driver.interrupt if hasattr(driver, "interrupt") else driver.cancel)()
        except Exception as error:
            logger.warning("the console could not read the journal: %s", words(error))
            logger.debug("reading failed", exc_info=True)
        return None


def _shrink(connection: Connection) -> None:
    """Let go of the pages that were read: nobody may look again for days."""
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql("PRAGMA shrink_memory").close()


def _trace(connection: Connection, turn_id: str) -> tuple[Trace, ...]:
    query = select(turns, ending_of(), runs.c.error)
    query = query.outerjoin(runs, runs.c.turn_id == turns.c.turn_id)
    query = query.where(turns.c.turn_id == turn_id).order_by(turns.c.id.desc()).limit(1)
    row = connection.execute(query).one_or_none()
    if row is None:
        return ()
    told = tuple(readable(lambda row: turn_row(row, sums_of(connection, [turn_id])), [row]))
    where = Conversation.parse(row.conversation)
    return tuple(
        trace(connection, one, row, story(connection, where, row.message_id)) for one in told
    )


def ends(connection: Connection, since: float) -> tuple[int, int]:
    """How many runs of the turns since then ended, and how many of them failed. Runs have no time;
    their ids rise with those of their turns, nearly. Errors are few: their turns are looked at.
    """
    asked = turns.c.id >= id_at(connection, turns.c.opened, since)
    query = select(runs.c.id).join_from(turns, runs, runs.c.turn_id == turns.c.turn_id)
    first = connection.scalar(query.where(asked).order_by(turns.c.id).limit(1))
    if first is None:
        return 0, 0
    ended = select(func.count()).where(runs.c.id >= first, runs.c.stop != "")
    failed = select(func.count()).join_from(runs, turns, runs.c.turn_id == turns.c.turn_id)
    failed = failed.where(runs.c.stop == Stop.FAILED, text(f"runs.{IN_ERROR}"))
    failed = failed.where(*opened_between(connection, since))
    return connection.scalar(ended) or 0, connection.scalar(failed) or 0


def costs(connection: Connection, since: float, by: str) -> tuple[CostSum, ...]:
    """Of days that are over from their sums, of the others from the rows."""
    if by == "tool":
        return _dearest(tool_costs(connection, since))
    last = connection.scalar(select(func.max(day_usage.c.day)))
    begin = since if last is None else max(since, midnight(last, later=1))
    closed = day_usage.c.day >= since, day_usage.c.day < begin
    names = "requests", *TOKENS, "cost", "unpriced"
    sums = [func.sum(day_usage.c[name]).label(name) for name in names]
    named = day_usage.c[by]
    found = [
        CostSum(str(row[0]), sum_of(row))
        for row in connection.execute(select(named, *sums).where(*closed).group_by(named))
    ]
    if by == "day":
        return (*sorted(found, key=lambda one: float(one.name)), *_open_days(connection, begin))
    found += [
        CostSum(str(row[0]), sum_of(row))
        for row in connection.execute(
            select(usage.c[by], *totals(usage))
            .where(usage.c.at >= begin, usage.c.step != PAYER)
            .group_by(usage.c[by])
        )
    ]
    whole: dict[str, UsageSum] = {}
    for one in found:
        whole[one.name] = _plus(whole.get(one.name, UsageSum()), one.usage)
    dearest = _dearest(CostSum(name, used) for name, used in whole.items())
    called = _called(connection, by, [one.name for one in dearest if not one.others])
    return tuple(
        one if one.others else replace(one, called=called.get(one.name, "")) for one in dearest
    )


def _dearest(sums: Iterable[CostSum]) -> tuple[CostSum, ...]:
    """The dearest, and all the others as one: together they are the whole."""
    ranked = sorted(sums, key=lambda one: (-one.usage.cost, -one.usage.requests))
    if not (others := ranked[COSTS:]):
        return (*ranked,)
    rest = reduce(_plus, (one.usage for one in others))
    return (*ranked[:COSTS], CostSum("", rest, others=len(others)))


def _called(connection: Connection, by: str, names: Sequence[str]) -> dict[str, str]:
    """How people call these groups or persons."""
    if by == "asker":
        who = speakers.c.user_id
        known = select(who, func.max(speakers.c.name)).where(who.in_([*map(int, names)]), who != 0)
        return {str(row[0]): row[1] for row in connection.execute(known.group_by(who))}
    if by != "conversation":
        return {}
    said = select(messages.c.group_name).order_by(messages.c.id.desc()).limit(1)
    there = {name: said.where(messages.c.conversation == name) for name in names}
    return {name: connection.scalar(query) or "" for name, query in there.items()}


def _open_days(connection: Connection, begin: float) -> list[CostSum]:
    """The days since then, one after the other; those without use are not there."""
    told = []
    asked = usage.c.step != PAYER
    while first := connection.scalar(
        select(func.min(usage.c.at)).where(usage.c.at >= begin, asked)
    ):
        day_, begin = midnight(first), midnight(first, later=1)
        query = select(*totals(usage)).where(usage.c.at >= day_, usage.c.at < begin, asked)
        told.append(CostSum(str(day_), sum_of(connection.execute(query).one())))
    return told


def _plus(one: UsageSum, other: UsageSum) -> UsageSum:
    return UsageSum(*(getattr(one, name) + getattr(other, name) for name in one.__struct_fields__))
