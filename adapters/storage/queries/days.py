"""What happened in some hours: turns by their ends, who took most, calls of tools, and what
operators did.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import Any, NamedTuple, TypeAlias

from msgspec.structs import asdict
from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    func,
    select,
    text,
)

from adapters.storage.queries.scanning import between, id_at, opened_between, readable
from adapters.storage.queries.turns import ending_of, unanswered
from adapters.storage.tables import (
    IN_ERROR,
    PAYER,
    WAS_DRAFT,
    audit,
    runs,
    sends,
    speakers,
    tool_calls,
    turns,
    usage,
    verdicts,
)
from bot.domain import codec
from bot.domain.console_views import (
    ToolUse,
)
from bot.domain.drafts import draft_of
from bot.domain.errors import AlreadySaid, ToolCancelled, ToolDenied, ToolRateLimited
from bot.domain.events import Conversation
from bot.domain.journal import Audited
from bot.domain.model_messages import ToolMessage
from bot.domain.query_results import (
    DayCounts,
    DaySum,
    Spender,
    UsageSum,
)
from bot.domain.run import Stop

FAILURES = 5  # that are told, the last ones


TOP = 5  # people, and groups


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


Conditions: TypeAlias = tuple[ColumnElement[bool], ...]


class _Hours(NamedTuple):
    """What says of verdicts, requests and turns that they are of some hours."""

    heard: Conditions
    used: Conditions
    then: Conditions


def day(
    connection: Connection, since: float, until: float, where: Conversation | None = None
) -> DaySum:
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


def audited(connection: Connection, latest: int) -> tuple[Audited, ...]:
    """The audit of the console, the latest entry first."""
    rows = connection.execute(select(audit).order_by(audit.c.id.desc()).limit(latest))
    return tuple(
        Audited(
            at=row.at,
            login=row.login,
            address=row.address,
            action=row.action,
            object=row.object,
            outcome=row.outcome,
        )
        for row in rows
    )
