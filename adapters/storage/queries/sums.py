"""Sums for people: usage of models, and events of some hours. `retention.py` sums up past days."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from typing import Any, NamedTuple, TypeAlias

from msgspec.structs import asdict, replace
from sqlalchemy import (
    ColumnElement,
    Connection,
    Double,
    Select,
    and_,
    case,
    cast,
    func,
    literal,
    select,
    text,
)

from adapters.storage.queries.scanning import between, id_at, opened_between, readable
from adapters.storage.queries.turns import TOKENS, ending_of, sum_of, totals, unanswered
from adapters.storage.tables import (
    IN_ERROR,
    PAYER,
    SHARED,
    WAS_DRAFT,
    day_tools,
    day_usage,
    messages,
    runs,
    sends,
    speakers,
    tool_calls,
    turns,
    usage,
    verdicts,
)
from bot.core import codec
from bot.core.calendar_days import midnight
from bot.core.console_views import CostSum, ToolUse
from bot.core.conversation import Conversation
from bot.core.drafts import draft_of
from bot.core.errors import AlreadySaid
from bot.core.query_results import DayCounts, DaySum, Spender, SpentSum, UsageSum
from frostagent.types.errors import ToolCancelled, ToolDenied, ToolRateLimited
from frostagent.types.messages import ToolMessage
from frostagent.types.runs import Stop

COSTS = 30  # most expensive ones of each kind


def spent(
    connection: Connection,
    since: float,
    where: Conversation | None = None,
    asker: int | None = None,
    turn_id: str | None = None,
) -> UsageSum:
    query = select(*totals(usage)).where(usage.c.at >= since, usage.c.step != PAYER)
    if where is not None:
        query = query.where(usage.c.conversation == str(where))
    if asker is not None:
        query = query.where(usage.c.asker == asker)
    if turn_id is not None:
        query = query.where(usage.c.turn_id == turn_id)
    return sum_of(connection.execute(query).one())


def taken(connection: Connection, since: float, until: float) -> tuple[SpentSum, ...]:
    """Usage from `since` to `until`, by conversation and person."""
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
    """Cost since then by a column; past days from their sums, others from the rows."""
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
    """The most expensive ones, and the others as one, so that the total is complete."""
    ranked = sorted(sums, key=lambda one: (-one.usage.cost, -one.usage.requests))
    if not (others := ranked[COSTS:]):
        return (*ranked,)
    rest = reduce(_plus, (one.usage for one in others))
    return (*ranked[:COSTS], CostSum("", rest, others=len(others)))


def _called(connection: Connection, by: str, names: Sequence[str]) -> dict[str, str]:
    """Names of these groups or people."""
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
    """Usage per day since `begin`; days without use are left out."""
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
    """Cost per tool since that midnight; past days from their sums."""
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
    """Round requests and tokens to integers that add up to the total (largest remainder). A part
    without a known price counts as one, or the rest would look like its price.
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
    """Each tool's share of the requests that are `used`: its name, and SHARED."""
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
    """Conditions: the request was the first to read these calls' results."""
    return calls.c.turn_id == usage.c.turn_id, calls.c.step == usage.c.step - 1


FAILURES = 5  # the latest ones shown


TOP = 5  # people and groups shown


LATEST = 2000  # calls of all tools together


LATELY = 10  # latest calls that represent a tool's state


NEARLY = 0.95


OK = "ok"


OPEN = ""  # unfinished


UNTELLING = {
    OPEN,
    *(kind.code for kind in (AlreadySaid, ToolCancelled, ToolDenied, ToolRateLimited)),
}
"""Codes of calls that were not made or not finished: they say nothing about the tool."""


Conditions: TypeAlias = tuple[ColumnElement[bool], ...]


class _Hours(NamedTuple):
    """Conditions for verdicts, requests and turns of some hours."""

    heard: Conditions
    used: Conditions
    then: Conditions


def day(
    connection: Connection, since: float, until: float, where: Conversation | None = None
) -> DaySum:
    """The sums from `since` to before `until` (0: to the end); of one conversation or all."""
    hours = _hours(connection, since, until, where)
    return DaySum(
        **asdict(_counts(connection, hours)),
        failed=_failed(connection, hours.then),
        people=_people(connection, hours.used),
        groups=_groups(connection, hours.used),
        published=_published(connection, hours.then),
    )


def day_counts(connection: Connection, since: float, until: float) -> DayCounts:
    """The part of `day` that the first page shows, over all conversations."""
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
    """The error types of the latest failed turns. Starts from the errors, which are few."""
    errors = select(runs.c.error, runs.c.turn_id).join(turns, turns.c.turn_id == runs.c.turn_id)
    failed = errors.where(text(f"runs.{IN_ERROR}"), runs.c.stop == "failed", *then)
    rows = connection.execute(failed.order_by(runs.c.id.desc()).limit(FAILURES))
    return tuple((error.partition(":")[0], turn_id) for error, turn_id in rows)


def _published(connection: Connection, then: Conditions) -> tuple[tuple[str, int], ...]:
    """Who published drafts of these turns; a draft may be several messages."""
    drafts = select(sends.c.send_id, sends.c.reason).join(turns, turns.c.turn_id == sends.c.turn_id)
    public = drafts.where(text(f"sends.{WAS_DRAFT}"), *then)
    rows = connection.execute(public.order_by(sends.c.id))
    by = {draft_of(send_id): who for send_id, who in rows}
    return tuple(Counter(by.values()).most_common(TOP))


def _models(connection: Connection, used: Conditions) -> tuple[tuple[str, UsageSum], ...]:
    query = select(usage.c.model, *totals(usage)).where(*used).group_by(usage.c.model)
    return tuple((row.model, sum_of(row)) for row in connection.execute(query))


def _people(connection: Connection, used: Conditions) -> tuple[Spender, ...]:
    asked = (*used, usage.c.asker != 0)
    somewhere = func.max(usage.c.conversation)
    rows = connection.execute(_most(usage.c.asker, somewhere).where(*asked)).all()
    return tuple(
        Spender(who, _name(connection, where, who), int(tokens), cost)
        for who, where, tokens, cost in rows
    )


def _name(connection: Connection, where: str, who: int) -> str:
    """Latest name of a person there."""
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
    """Those with the highest cost, then most tokens."""
    tokens = func.sum(usage.c.prompt + usage.c.completion)
    cost = func.coalesce(func.sum(usage.c.cost), 0.0)
    return select(*whose, tokens, cost).group_by(whose[0]).order_by(-cost, -tokens).limit(TOP)


def ends(connection: Connection, since: float) -> tuple[int, int]:
    """The number of ended runs of turns since then, and of failed ones. Runs have no time, but
    their ids roughly rise with those of their turns. Failures are few, so their turns are looked
    up.
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


def tool_uses(connection: Connection) -> tuple[ToolUse, ...]:
    """The recently called tools, by name."""
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
    """The results of these calls as the model read them."""
    query = select(tool_calls.c.id, tool_calls.c.result).where(tool_calls.c.id.in_(ids))
    rows = [row for row in connection.execute(query) if row.result]
    return dict(readable(lambda row: (row.id, codec.read(ToolMessage, row.result).content), rows))
