"""What the console reads of the journal: turns and their traces, tools, sums. `SqlShown` reads in a
thread of its own, so that nobody else waits; everything else blocks.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from functools import reduce
from typing import Any, TypeVar

from msgspec.structs import replace
from sqlalchemy import Connection, Row, Table, func, select, text

from adapters.storage.books import story
from adapters.storage.chats import chat, chats, line
from adapters.storage.database import Database
from adapters.storage.day_sums import day_counts, midnight, parts
from adapters.storage.failures import words
from adapters.storage.reads import readable
from adapters.storage.rows import SEND_SEGMENTS
from adapters.storage.statements import plain
from adapters.storage.tables import (
    IN_ERROR,
    PAYER,
    SHARED,
    day_tools,
    day_usage,
    messages,
    requests,
    runs,
    sends,
    speakers,
    steered,
    steps,
    tool_calls,
    turns,
    usage,
)
from adapters.storage.turn_queries import (
    TOKENS,
    ending_of,
    id_at,
    opened_between,
    rows,
    sum_of,
    sums_of,
    totals,
    turn_row,
)
from bot.domain import codec
from bot.domain.actions import plain_words
from bot.domain.console_views import (
    Chat,
    ChatRows,
    CostSum,
    Span,
    ToolUse,
    Trace,
    TurnQuery,
    TurnRow,
    TurnRows,
    Unanswered,
)
from bot.domain.drafts import draft_of
from bot.domain.errors import AlreadySaid, ToolCancelled, ToolDenied, ToolRateLimited
from bot.domain.events import Conversation
from bot.domain.journal import RequestPurpose
from bot.domain.model_messages import AssistantMessage, ToolMessage, UserMessage
from bot.domain.query_results import DayCounts, Story, UsageSum
from bot.domain.run import Stop

SPANS = 300  # of one turn, the first


def turn_trace(connection: Connection, row: TurnRow, turn: Row[Any], story: Story) -> Trace:
    """The turn of this row, and what it did."""
    said = [turn.user, *(line.user for line in _of(connection, steered, row.turn_id))]
    prompt = "\n".join(read.text for text in said if (read := _read(UserMessage, text)))
    spans = [
        *_wait(row, story),
        *_steps(connection, row.turn_id),
        *_requests(connection, row),
        *_sends(connection, row.turn_id),
    ]
    spans.sort(key=lambda span: span.begin)
    return Trace(row=row, story=story, prompt=prompt, spans=tuple(spans[:SPANS]))


def _of(connection: Connection, table: Table, turn_id: str) -> list[Row[Any]]:
    query = select(table).where(table.c.turn_id == turn_id).order_by(table.c.id).limit(SPANS)
    return list(connection.execute(query))


def _read(kind: Any, text: str | None) -> Any:
    try:
        return codec.read(kind, text) if text else None
    except codec.Unreadable:
        return None


def _wait(row: TurnRow, story: Story) -> Iterator[Span]:
    if story.taken and row.at > story.taken:
        yield Span(kind="wait", name="", begin=story.taken, seconds=row.at - story.taken)


def _steps(connection: Connection, turn_id: str) -> Iterator[Span]:
    """Each request with its calls; a call's arguments stand in the answer that made it."""
    used = {row.step: row for row in _of(connection, usage, turn_id)}
    asked: dict[tuple[int, str], str] = {}
    ends: dict[int, float] = {}
    for step in _of(connection, steps, turn_id):
        message = _read(AssistantMessage, step.message) or AssistantMessage()
        ends[step.step] = step.at
        for call in message.tool_calls:
            asked[step.step, plain(call.id)] = call.arguments
        yield _request(step, step.finish, message, used.get(step.step))
    for call in _of(connection, tool_calls, turn_id):
        result = _read(ToolMessage, call.result)
        yield Span(
            kind="tool",
            name=call.name,
            begin=call.started or ends.get(call.step, 0.0),
            seconds=call.seconds or 0.0,
            outcome=call.code,
            text="" if result is None else result.content,
            asked=asked.get((call.step, call.call_id), ""),
        )


def _request(
    row: Row[Any], outcome: str, message: AssistantMessage, used: Row[Any] | None, run: str = ""
) -> Span:
    calls = "".join(f"\n→ {call.name}({call.arguments})" for call in message.tool_calls)
    return Span(
        kind="model",
        name=row.model,
        begin=row.at - row.seconds,
        seconds=row.seconds,
        outcome=outcome,
        text=(message.text + calls).strip(),
        thought=message.reasoning.text if message.reasoning else "",
        usage=None if used is None else _usage(used),
        run=run,
    )


def _usage(row: Row[Any]) -> UsageSum:
    unpriced = row.cost is None
    return UsageSum(1, row.prompt, row.cached, row.completion, row.cost or 0.0, int(unpriced))


def _requests(connection: Connection, turn: TurnRow) -> Iterator[Span]:
    """Those that failed, those of subagents, and those on errands."""
    closed = math.inf if turn.seconds is None else turn.at + turn.seconds
    for row in _of(connection, requests, turn.turn_id):
        message = _read(AssistantMessage, row.message)
        if message is not None:
            yield _request(row, row.outcome, message, None, row.run)
            continue
        begin = row.at - row.seconds
        yield Span(
            kind="model" if row.outcome == "ok" else "failed",
            name=row.model,
            begin=begin,
            seconds=row.seconds,
            outcome=row.outcome,
            # Older versions wrote down no errand.
            run=row.run or (RequestPurpose.LATER if begin >= closed else ""),
        )


def _sends(connection: Connection, turn_id: str) -> Iterator[Span]:
    for row in _of(connection, sends, turn_id):
        segments = _read(SEND_SEGMENTS, row.segments) or ()
        yield Span(
            kind="send",
            name="final" if row.final else "between",
            begin=row.queued,
            seconds=0.0 if draft_of(row.send_id) else max(0.0, row.changed - row.queued),
            outcome=row.state,
            text=plain_words(segments),
            asked=row.reason,
        )


LATEST = 2000  # calls of all tools together
LATELY = 10  # calls of a tool that say how it is now
NEARLY = 0.95
OK = "ok"
OPEN = ""  # of those that did not end
UNTELLING = {
    OPEN,
    *(kind.code for kind in (AlreadySaid, ToolCancelled, ToolDenied, ToolRateLimited)),
}
"""Codes of calls that were not made, or not to their end: they say nothing of the tool."""


def tool_uses(connection: Connection) -> tuple[ToolUse, ...]:
    """The tools that were called lately, by name."""
    columns = tool_calls.c.name, tool_calls.c.id, tool_calls.c.code, tool_calls.c.seconds
    latest = select(*columns).order_by(tool_calls.c.id.desc()).limit(LATEST)
    calls, times = dict[str, list[tuple[int, str]]](), dict[str, list[float]]()
    for name, id_, code, seconds in connection.execute(latest):
        calls.setdefault(name, []).append((id_, code))
        if seconds is not None:
            times.setdefault(name, []).append(seconds)
    failures = {
        name: [(id_, code) for id_, code in those if code not in {OK, OPEN}]
        for name, those in calls.items()
    }
    errors = _errors(connection, [those[0][0] for those in failures.values() if those])
    told = []
    for name, those in sorted(calls.items()):
        failed, taken = failures[name], sorted(times.get(name, (0.0,)))
        telling = [code for _, code in those if code not in UNTELLING][:LATELY]
        last, code = failed[0] if failed else (0, "")
        told.append(
            ToolUse(
                name,
                len(those),
                len(failed),
                code,
                taken[min(len(taken) - 1, int(NEARLY * len(taken)))],
                going_on=sum(code == OPEN for _, code in those),
                lately=(sum(code != OK for code in telling), len(telling)),
                error=errors.get(last, ""),
            )
        )
    return tuple(told)


def _errors(connection: Connection, ids: list[int]) -> dict[int, str]:
    """What the model read of these calls."""
    query = select(tool_calls.c.id, tool_calls.c.result).where(tool_calls.c.id.in_(ids))
    rows = [row for row in connection.execute(query) if row.result]
    return dict(readable(lambda row: (row.id, codec.read(ToolMessage, row.result).content), rows))


def tool_costs(connection: Connection, since: float) -> list[CostSum]:
    """The cost of each tool since that midnight: of days that are added up from their sums."""
    last = connection.scalar(select(func.max(day_tools.c.day)))
    closed = [func.sum(day_tools.c[name]) for name in SHARED]
    told = select(day_tools.c.tool, *closed).where(day_tools.c.day >= since)
    rows = [*connection.execute(told.group_by(day_tools.c.tool))]
    open_ = since if last is None else max(since, midnight(last, later=1))
    rows += connection.execute(parts(usage.c.at >= open_))
    whole: dict[str, list[float]] = {}
    for tool, *numbers in rows:
        before = whole.get(tool, [0.0] * len(SHARED))
        whole[tool] = [one + float(more) for one, more in zip(before, numbers, strict=True)]
    return list(_sums(whole))


def _sums(whole: dict[str, list[float]]) -> Iterator[CostSum]:
    """Requests and tokens are whole, and add up to those of all: the largest parts of one are
    rounded up. A part without a known price counts as one, or the rest would look like its price.
    """
    parts_ = {tool: dict(zip(SHARED, numbers, strict=True)) for tool, numbers in whole.items()}
    counts = {
        name: _rounded({tool: of[name] for tool, of in parts_.items()})
        for name in ("requests", *TOKENS)
    }
    for tool, told in parts_.items():
        own = {name: of[tool] for name, of in counts.items()}
        unpriced = math.ceil(round(told["unpriced"], 6))
        yield CostSum(tool, UsageSum(**own, unpriced=unpriced, cost=told["cost"]))


def _rounded(numbers: Mapping[str, float]) -> dict[str, int]:
    exact = {tool: round(number, 6) for tool, number in numbers.items()}
    told = {tool: math.floor(number) for tool, number in exact.items()}
    left = round(sum(exact.values())) - sum(told.values())
    for tool in sorted(exact, key=lambda one: (told[one] - exact[one], one))[:left]:
        told[tool] += 1
    return told


DEADLINE = 2.0  # seconds for what a page reads
COSTS = 30  # of each kind, the dearest

T = TypeVar("T")

logger = logging.getLogger(__name__)


class SqlShown:
    """Fits `ConsoleQueries`. What is on its way into the journal may not be told yet."""

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
        return await self._read(tool_uses)

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
        turn_trace(connection, one, row, story(connection, where, row.message_id)) for one in told
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
