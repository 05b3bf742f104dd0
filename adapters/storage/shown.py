"""Reading the journal for the console, in a thread of its own: however long somebody looks, nobody
else waits. Blocks, but for `SqlShown`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from typing import Any, TypeVar

from sqlalchemy import Connection, Row, Select, func, select

from adapters.storage.books import story
from adapters.storage.chats import chat, chats
from adapters.storage.closed_days import midnight
from adapters.storage.database import Database
from adapters.storage.day_sums import day
from adapters.storage.failures import words
from adapters.storage.reads import readable
from adapters.storage.rows import SEGMENTS
from adapters.storage.tables import (
    day_usage,
    messages,
    runs,
    tool_calls,
    turns,
    usage,
    verdicts,
)
from adapters.storage.tool_uses import tools
from adapters.storage.traces import trace
from bot.domain import codec
from bot.domain.books import DaySum, Story, UsageSum
from bot.domain.events import Conversation, MessageReceived
from bot.domain.shown import (
    ROWS,
    UNANSWERED,
    Chat,
    ChatRows,
    CostSum,
    ToolUse,
    Trace,
    TurnQuery,
    TurnRow,
    TurnRows,
    plain_words,
)

DEADLINE = 2.0  # seconds for what a page reads
COSTS = 30  # of each kind, the dearest
TOKENS = "prompt", "cached", "completion"
SAID = "segments", "erased", "group_name", "card", "nickname"

T = TypeVar("T")

logger = logging.getLogger(__name__)


class SqlShown:
    """Fits `Showing`. What is on its way into the journal may not be told yet."""

    def __init__(self, database: Database, thread: Executor) -> None:
        self._database = database
        self._thread = thread

    async def rows(self, query: TurnQuery) -> TurnRows | None:
        """The latest that the query is about."""
        return await self._read(lambda connection: rows(connection, query))

    async def trace(self, turn_id: str) -> tuple[Trace, ...] | None:
        """The turn of this id."""
        return await self._read(lambda connection: _trace(connection, turn_id))

    async def silence(self, where: Conversation, message_id: str) -> Story | None:
        """Why a message was not answered."""
        return await self._read(lambda connection: story(connection, where, message_id))

    async def chats(self, before: int) -> ChatRows | None:
        """The conversations before that message."""
        return await self._read(lambda connection: chats(connection, before))

    async def chat(self, where: Conversation, before: int) -> Chat | None:
        """The messages of one, before that message."""
        return await self._read(lambda connection: chat(connection, where, before))

    async def tools(self) -> tuple[ToolUse, ...] | None:
        """How the latest calls of tools went."""
        return await self._read(tools)

    async def day(self, *, since: float, until: float) -> DaySum | None:
        """What happened from then on, before `until`."""
        return await self._read(lambda connection: day(connection, since, until, None))

    async def costs(self, *, since: float, by: str) -> tuple[CostSum, ...] | None:
        """What was taken since then."""
        return await self._read(lambda connection: costs(connection, since, by))

    async def _read(self, query: Callable[[Connection], T]) -> T | None:
        if not self._database.ready:
            return None
        drivers: list[Any] = []

        def read() -> T:
            with self._database.reading() as connection:
                drivers.append(connection.connection.driver_connection)
                return query(connection)

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


def rows(connection: Connection, query: TurnQuery) -> TurnRows:
    """The latest turns and unanswered messages, by the order of their ids: no row is counted."""
    told: list[tuple[float, int, int, Row[Any]]] = []
    if query.outcome != UNANSWERED:
        told += [(row.opened, row.id, 0, row) for row in connection.execute(_turns(query))]
    if query.outcome in {"", UNANSWERED} and not (query.tool or query.model):
        told += [(row.at, 0, row.id, row) for row in connection.execute(_verdicts(query))]
    told.sort(key=lambda one: -one[0])
    shown = told[:ROWS]
    sums = _sums(connection, [row.turn_id for _, turn, _, row in shown if turn])
    found = tuple(readable(lambda one: _turn(one[3], sums) if one[1] else _silent(one[3]), shown))
    if len(told) <= ROWS:
        return TurnRows(found, None)
    turn = min((turn for _, turn, _, _ in shown if turn), default=query.turn)
    verdict = min((verdict for _, _, verdict, _ in shown if verdict), default=query.verdict)
    return TurnRows(found, (turn, verdict))


def _turns(query: TurnQuery) -> Select[Any]:
    found = select(turns, runs.c.stop, runs.c.error).outerjoin(
        runs, runs.c.turn_id == turns.c.turn_id
    )
    if query.where:
        found = found.where(turns.c.conversation == query.where)
    if query.asker:
        found = found.where(turns.c.asker == query.asker)
    if query.outcome:
        found = found.where(runs.c.stop == query.outcome)
    if query.outcome == "failed":
        found = found.where(turns.c.turn_id.in_(select(runs.c.turn_id).where(runs.c.error != "")))
    if query.tool:
        calls = select(tool_calls.c.id).where(
            tool_calls.c.turn_id == turns.c.turn_id, tool_calls.c.name == query.tool
        )
        found = found.where(calls.exists())
    if query.model:
        asked = select(usage.c.id).where(
            usage.c.turn_id == turns.c.turn_id, usage.c.model == query.model
        )
        found = found.where(asked.exists())
    if query.turn:
        found = found.where(turns.c.id < query.turn)
    return found.order_by(turns.c.id.desc()).limit(ROWS + 1)


def _verdicts(query: TurnQuery) -> Select[Any]:
    """Verdicts that nobody was answered by, and the message, where it is kept."""
    later = verdicts.alias("later")
    same = (
        later.c.conversation == verdicts.c.conversation,
        later.c.message_id == verdicts.c.message_id,
        later.c.id > verdicts.c.id,
    )
    alike = messages.alias("alike")
    message = (
        select(func.max(alike.c.id))
        .where(
            alike.c.conversation == verdicts.c.conversation,
            alike.c.message_id == verdicts.c.message_id,
        )
        .correlate(verdicts)
        .scalar_subquery()
    )
    said = [messages.c[name] for name in SAID]
    found = (
        select(verdicts, *said)
        .select_from(verdicts.outerjoin(messages, messages.c.id == message))
        .where(~verdicts.c.wakes, ~select(later.c.id).where(*same).exists())
    )
    if query.where:
        found = found.where(verdicts.c.conversation == query.where)
    if query.asker:
        found = found.where(verdicts.c.sender == query.asker)
    if query.verdict:
        found = found.where(verdicts.c.id < query.verdict)
    return found.order_by(verdicts.c.id.desc()).limit(ROWS + 1)


def _sums(connection: Connection, turn_ids: Sequence[str]) -> dict[str, UsageSum]:
    query = select(usage.c.turn_id, *_totals(usage)).where(usage.c.turn_id.in_(turn_ids))
    return {row.turn_id: sum_of(row) for row in connection.execute(query.group_by(usage.c.turn_id))}


def _totals(table: Any) -> list[Any]:
    return [
        func.count().label("requests"),
        *(func.coalesce(func.sum(table.c[name]), 0).label(name) for name in TOKENS),
        func.coalesce(func.sum(table.c.cost), 0.0).label("cost"),
        (func.count() - func.count(table.c.cost)).label("unpriced"),
    ]


def sum_of(row: Row[Any]) -> UsageSum:
    """The sum that a row holds."""
    return UsageSum(
        int(row.requests),
        int(row.prompt),
        int(row.cached),
        int(row.completion),
        float(row.cost),
        int(row.unpriced),
    )


def _turn(row: Row[Any], sums: dict[str, UsageSum]) -> TurnRow:
    question: MessageReceived = codec.read(MessageReceived, row.question)
    return TurnRow(
        turn_id=row.turn_id,
        message_id=row.message_id,
        where=question.conversation,
        group=question.group_name,
        asker=row.asker,
        name=question.sender.name,
        text=plain_words(question.segments, own=question.self_id),
        at=row.opened,
        outcome=row.stop or "",
        seconds=None if row.closed is None else row.closed - row.opened,
        error=row.error or "",
        usage=sums.get(row.turn_id, UsageSum()),
    )


def _silent(row: Row[Any]) -> TurnRow:
    said = row.segments is not None and not row.erased
    where = Conversation.parse(row.conversation)
    segments = codec.read(SEGMENTS, row.segments) if said else ()
    return TurnRow(
        turn_id="",
        message_id=row.message_id,
        where=where,
        group=row.group_name if said else "",
        asker=row.sender,
        name=(row.card or row.nickname) if said else "",
        text=plain_words(segments, own=where.platform_id),
        at=row.at,
        outcome=UNANSWERED,
        reason=row.reason,
    )


def _trace(connection: Connection, turn_id: str) -> tuple[Trace, ...]:
    query = select(turns, runs.c.stop, runs.c.error)
    query = query.outerjoin(runs, runs.c.turn_id == turns.c.turn_id)
    query = query.where(turns.c.turn_id == turn_id).order_by(turns.c.id.desc()).limit(1)
    row = connection.execute(query).one_or_none()
    if row is None:
        return ()
    told = tuple(readable(lambda row: _turn(row, _sums(connection, [turn_id])), [row]))
    where = Conversation.parse(row.conversation)
    return tuple(
        trace(connection, one, row, story(connection, where, row.message_id)) for one in told
    )


def costs(connection: Connection, since: float, by: str) -> tuple[CostSum, ...]:
    """Of days that are over from their sums, of the others from the rows."""
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
            select(usage.c[by], *_totals(usage)).where(usage.c.at >= begin).group_by(usage.c[by])
        )
    ]
    whole: dict[str, UsageSum] = {}
    for one in found:
        whole[one.name] = _plus(whole.get(one.name, UsageSum()), one.usage)
    told = [CostSum(name, used) for name, used in whole.items()]
    return tuple(sorted(told, key=lambda one: (-one.usage.cost, -one.usage.requests))[:COSTS])


def _open_days(connection: Connection, begin: float) -> list[CostSum]:
    """The days since then, one after the other; those without use are not there."""
    told = []
    while first := connection.scalar(select(func.min(usage.c.at)).where(usage.c.at >= begin)):
        day_, begin = midnight(first), midnight(first, later=1)
        query = select(*_totals(usage)).where(usage.c.at >= day_, usage.c.at < begin)
        told.append(CostSum(str(day_), sum_of(connection.execute(query).one())))
    return told


def _plus(one: UsageSum, other: UsageSum) -> UsageSum:
    return UsageSum(*(getattr(one, name) + getattr(other, name) for name in one.__struct_fields__))
