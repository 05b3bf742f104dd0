"""What requests to models took: sums of rows, and of days that were added up (`retention.py`)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import reduce
from typing import Any

from msgspec.structs import replace
from sqlalchemy import (
    ColumnElement,
    Connection,
    Double,
    Row,
    Select,
    and_,
    case,
    cast,
    func,
    literal,
    select,
)

from adapters.storage.tables import (
    PAYER,
    SHARED,
    day_tools,
    day_usage,
    messages,
    speakers,
    tool_calls,
    usage,
)
from bot.domain.console_views import (
    CostSum,
)
from bot.domain.events import Conversation
from bot.domain.query_results import (
    SpentSum,
    UsageSum,
)

TOKENS = "prompt", "cached", "completion"


COSTS = 30  # of each kind, the dearest


def midnight(moment: float, *, later: int = 0) -> float:
    """The beginning of that day, or of one so many days later, in seconds since 1970.

    By the calendar: days of 23 and 25 hours are as long as they are.
    """
    day = datetime.fromtimestamp(moment, UTC).astimezone().date() + timedelta(days=later)
    return datetime(day.year, day.month, day.day).astimezone().timestamp()


def totals(table: Any) -> list[Any]:
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


def sums_of(connection: Connection, turn_ids: Sequence[str]) -> dict[str, UsageSum]:
    query = select(usage.c.turn_id, *totals(usage)).where(usage.c.turn_id.in_(turn_ids))
    return {row.turn_id: sum_of(row) for row in connection.execute(query.group_by(usage.c.turn_id))}


def spent(
    connection: Connection,
    since: float,
    where: Conversation | None = None,
    asker: int | None = None,
    turn_id: str | None = None,
) -> UsageSum:
    """The sums of what was used since then."""
    query = select(
        func.count(),
        func.coalesce(func.sum(usage.c.prompt), 0),
        func.coalesce(func.sum(usage.c.cached), 0),
        func.coalesce(func.sum(usage.c.completion), 0),
        func.coalesce(func.sum(usage.c.cost), 0.0),
        func.count() - func.count(usage.c.cost),
    ).where(usage.c.at >= since, usage.c.step != PAYER)
    if where is not None:
        query = query.where(usage.c.conversation == str(where))
    if asker is not None:
        query = query.where(usage.c.asker == asker)
    if turn_id is not None:
        query = query.where(usage.c.turn_id == turn_id)
    requests, prompt, cached, completion, cost, unpriced = connection.execute(query).one()
    return UsageSum(requests, int(prompt), int(cached), int(completion), float(cost), unpriced)


def taken(connection: Connection, since: float, until: float) -> tuple[SpentSum, ...]:
    """The sums taken from then on, to `until`."""
    query = select(
        usage.c.conversation,
        usage.c.asker,
        func.sum(usage.c.prompt + usage.c.completion),
        func.coalesce(func.sum(usage.c.cost), 0.0),
    ).where(usage.c.at >= since, usage.c.at <= until)
    return tuple(
        SpentSum(Conversation.parse(here) if here else None, who, int(tokens), float(cost))
        for here, who, tokens, cost in connection.execute(
            query.group_by(usage.c.conversation, usage.c.asker)
        )
    )


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


def parts(*used: ColumnElement[bool]) -> Select[Any]:
    """By tool its part of the requests that are `used`: its name, and SHARED."""
    others = tool_calls.alias("others")
    count = select(func.count()).select_from(others).where(*_were_read(others))
    among = case(
        (tool_calls.c.id.is_(None), 1.0),
        else_=cast(count.correlate(usage).scalar_subquery(), Double),
    )
    tool = func.coalesce(tool_calls.c.name, "").label("tool")
    numbers = [usage.c[name] for name in ("prompt", "completion", "cached", "cost")]
    each = (
        select(tool, among.label("among"), *numbers)
        .select_from(usage.outerjoin(tool_calls, and_(*_were_read(tool_calls))))
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


def _were_read(calls: Any) -> tuple[ColumnElement[bool], ...]:
    """That a request was the first to read the results of these calls."""
    return calls.c.turn_id == usage.c.turn_id, calls.c.step == usage.c.step - 1
