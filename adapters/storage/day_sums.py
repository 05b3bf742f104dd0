"""A day of the journal: what was asked, what became of it, and what it took. Days that are over are
added up once: to add ninety days of rows takes 300 ms. Blocks.
"""

from __future__ import annotations

import math
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple, TypeAlias

from msgspec.structs import asdict
from sqlalchemy import (
    ColumnElement,
    Connection,
    Double,
    Select,
    Table,
    and_,
    case,
    cast,
    func,
    insert,
    literal,
    select,
    text,
)

from adapters.storage.tables import (
    IN_ERROR,
    PAYER,
    SHARED,
    WAS_DRAFT,
    day_tools,
    day_usage,
    runs,
    sends,
    speakers,
    tool_calls,
    turns,
    usage,
    verdicts,
)
from adapters.storage.turn_queries import between, ending_of, opened_between, unanswered
from bot.domain.drafts import draft_of
from bot.domain.events import Conversation
from bot.domain.query_results import DayCounts, DaySum, Spender, UsageSum

LATE = 2 * 3600.0  # seconds after midnight


def midnight(moment: float, *, later: int = 0) -> float:
    """The beginning of that day, or of one so many days later, in seconds since 1970.

    By the calendar: days of 23 and 25 hours are as long as they are.
    """
    day = datetime.fromtimestamp(moment, UTC).astimezone().date() + timedelta(days=later)
    return datetime(day.year, day.month, day.day).astimezone().timestamp()


def add_up(connection: Connection, *, now: float) -> bool:
    """Add up the oldest day that is over and was not added up yet; whether there was one."""
    is_usage, is_tools = (_add_up_next(connection, one, now) for one in (day_usage, day_tools))
    return is_usage or is_tools


def _add_up_next(connection: Connection, table: Table, now: float) -> bool:
    """Each table by itself: of days from before there was one it is behind."""
    last = connection.scalar(select(func.max(table.c.day)))
    since = 0.0 if last is None else midnight(last, later=1)
    used = usage.c.at >= since, usage.c.at < midnight(now - LATE)
    first = connection.scalar(select(func.min(usage.c.at)).where(*used))
    if first is None:
        return False
    work = _add_up if table is day_usage else _add_up_tools
    work(connection, midnight(first), midnight(first, later=1))
    return True


def _add_up(connection: Connection, day: float, end: float) -> None:
    """Whose turn was erased meanwhile is nobody (erasure.py)."""
    turn = select(turns.c.id).where(turns.c.turn_id == usage.c.turn_id).exists()
    is_theirs = and_(usage.c.conversation != "", turn)
    theirs = (
        select(
            case((is_theirs, usage.c.conversation), else_="").label("conversation"),
            case((is_theirs, usage.c.asker), else_=0).label("asker"),
            *(usage.c[name] for name in ("model", "prompt", "completion", "cached", "cost")),
        )
        .where(usage.c.at >= day, usage.c.at < end, usage.c.step != PAYER)
        .subquery()
    )
    by = theirs.c.conversation, theirs.c.asker, theirs.c.model
    sums = select(
        literal(day),
        *by,
        func.count(),
        func.sum(theirs.c.prompt),
        func.sum(theirs.c.completion),
        func.sum(theirs.c.cached),
        func.count() - func.count(theirs.c.cost),
        func.coalesce(func.sum(theirs.c.cost), 0.0),
    ).group_by(*by)
    names = ("day", "conversation", "asker", "model", "requests", "prompt", "completion", "cached")
    connection.execute(insert(day_usage).from_select((*names, "unpriced", "cost"), sums))


def _add_up_tools(connection: Connection, day: float, end: float) -> None:
    by_tool = parts(usage.c.at >= day, usage.c.at < end).subquery()
    sums = select(literal(day), *by_tool.c)
    connection.execute(insert(day_tools).from_select(("day", "tool", *SHARED), sums))


def parts(*used: ColumnElement[bool]) -> Select[Any]:
    """By tool its part of the requests that are `used`: its name, and SHARED."""
    others = tool_calls.alias("others")
    count = select(func.count()).select_from(others).where(*_read(others))
    among = case(
        (tool_calls.c.id.is_(None), 1.0),
        else_=cast(count.correlate(usage).scalar_subquery(), Double),
    )
    tool = func.coalesce(tool_calls.c.name, "").label("tool")
    numbers = [usage.c[name] for name in ("prompt", "completion", "cached", "cost")]
    each = (
        select(tool, among.label("among"), *numbers)
        .select_from(usage.outerjoin(tool_calls, and_(*_read(tool_calls))))
        .where(usage.c.step != PAYER, *used)
        .subquery()
    )
    told = {
        "requests": literal(1.0, Double),
        "unpriced": case((each.c.cost.is_(None), 1.0), else_=0.0),
        "cost": func.coalesce(each.c.cost, 0.0),
    }
    sums = [func.sum(told.get(name, each.c.get(name)) / each.c.among) for name in SHARED]
    return select(each.c.tool, *sums).group_by(each.c.tool)


def _read(calls: Any) -> tuple[ColumnElement[bool], ...]:
    """That a request was the first to read the results of these calls."""
    return calls.c.turn_id == usage.c.turn_id, calls.c.step == usage.c.step - 1


FAILURES = 5  # that are told, the last ones
TOP = 5  # people, and groups


Conditions: TypeAlias = tuple[ColumnElement[bool], ...]


class _Hours(NamedTuple):
    """What says of verdicts, requests and turns that they are of some hours."""

    heard: Conditions
    used: Conditions
    then: Conditions


def day(connection: Connection, since: float, until: float, where: Conversation | None) -> DaySum:
    """The sums of the time from then on, before `until` (0: to the end): there, or in all."""
    hours = _hours(connection, since, until, where)
    return DaySum(
        **asdict(_counts(connection, hours)),
        failed=_failed(connection, hours.then),
        people=_people(connection, hours.used),
        groups=_groups(connection, hours.used),
        published=_published(connection, hours.then),
    )


def day_counts(connection: Connection, since: float, until: float) -> DayCounts:
    """Those of them that are asked for at a glance, in all."""
    return _counts(connection, _hours(connection, since, until, None))


def _hours(
    connection: Connection, since: float, until: float, where: Conversation | None
) -> _Hours:
    heard: Conditions = (*between(connection, verdicts.c.at, since, until), unanswered())
    used: Conditions = usage.c.at >= since, usage.c.at < (until or math.inf), usage.c.step != PAYER
    then: Conditions = (*opened_between(connection, since, until),)
    if where is not None:
        heard = *heard, verdicts.c.conversation == str(where)
        used = *used, usage.c.conversation == str(where)
        then = *then, turns.c.conversation == str(where)
    return _Hours(heard, used, then)


def _counts(connection: Connection, hours: _Hours) -> DayCounts:
    kinds = select(verdicts.c.reason, func.count()).where(*hours.heard)
    of_turns = turns.outerjoin(runs, runs.c.turn_id == turns.c.turn_id)
    endings = select(ending_of(), func.count()).select_from(of_turns).where(*hours.then)
    return DayCounts(
        turns=_pairs(connection, endings.group_by(text("ending"))),
        dropped=_pairs(connection, kinds.group_by(verdicts.c.reason)),
        models=_models(connection, hours.used),
    )


def _pairs(connection: Connection, query: Select[Any]) -> tuple[tuple[str, int], ...]:
    return tuple((name, count) for name, count in sorted(map(tuple, connection.execute(query))))


def _failed(connection: Connection, then: Conditions) -> tuple[tuple[str, str], ...]:
    """The kinds of errors that the last of these turns failed with. Errors are few: turns are
    looked for by them.
    """
    errors = select(runs.c.error, runs.c.turn_id).join(turns, turns.c.turn_id == runs.c.turn_id)
    failed = errors.where(text(f"runs.{IN_ERROR}"), runs.c.stop == "failed", *then)
    rows = connection.execute(failed.order_by(runs.c.id.desc()).limit(FAILURES))
    return tuple((error.partition(":")[0], turn_id) for error, turn_id in rows)


def _published(connection: Connection, then: Conditions) -> tuple[tuple[str, int], ...]:
    """By whom drafts of these turns were published; each may be several messages."""
    drafts = select(sends.c.send_id, sends.c.reason).join(turns, turns.c.turn_id == sends.c.turn_id)
    public = drafts.where(text(f"sends.{WAS_DRAFT}"), *then)
    rows = connection.execute(public.order_by(sends.c.id))
    by = {draft_of(send_id): who for send_id, who in rows}
    return tuple(Counter(by.values()).most_common(TOP))


def _models(connection: Connection, used: Conditions) -> tuple[tuple[str, UsageSum], ...]:
    rows = connection.execute(
        select(
            usage.c.model,
            func.count(),
            func.sum(usage.c.prompt),
            func.sum(usage.c.cached),
            func.sum(usage.c.completion),
            func.coalesce(func.sum(usage.c.cost), 0.0),
            func.count() - func.count(usage.c.cost),
        )
        .where(*used)
        .group_by(usage.c.model)
    ).all()
    return tuple((row[0], _sum(row)) for row in rows)


def _people(connection: Connection, used: Conditions) -> tuple[Spender, ...]:
    asked = (*used, usage.c.asker != 0)
    somewhere = func.max(usage.c.conversation)
    rows = connection.execute(_most(usage.c.asker, somewhere).where(*asked)).all()
    return tuple(
        Spender(who, _name(connection, where, who), int(tokens), cost)
        for who, where, tokens, cost in rows
    )


def _name(connection: Connection, where: str, who: int) -> str:
    """How somebody was last called there."""
    there = speakers.c.conversation == where, speakers.c.user_id == who
    return connection.scalar(select(speakers.c.name).where(*there).limit(1)) or ""


def _groups(connection: Connection, used: Conditions) -> tuple[Spender, ...]:
    there = (*used, usage.c.conversation.like("%:group:%"))
    rows = connection.execute(_most(usage.c.conversation).where(*there))
    return tuple(
        Spender(Conversation.parse(where).session_id, "", int(tokens), cost)
        for where, tokens, cost in rows
    )


def _most(*whose: Any) -> Select[Any]:
    """For whom most was taken, in money or else in tokens."""
    tokens = func.sum(usage.c.prompt + usage.c.completion)
    cost = func.coalesce(func.sum(usage.c.cost), 0.0)
    return select(*whose, tokens, cost).group_by(whose[0]).order_by(-cost, -tokens).limit(TOP)


def _sum(row: Any) -> UsageSum:
    _, requests, prompt, cached, completion, cost, unpriced = row
    return UsageSum(requests, int(prompt), int(cached), int(completion), float(cost), unpriced)
