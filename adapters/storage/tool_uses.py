"""How the latest calls of tools went. Blocks."""

from __future__ import annotations

from sqlalchemy import Connection, select

from adapters.storage.reads import readable
from adapters.storage.tables import tool_calls
from bot.domain import codec
from bot.domain.chat import ToolMessage
from bot.domain.errors import AlreadySaid, ToolCancelled, ToolDenied, ToolRateLimited
from bot.domain.inspection import ToolUse

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


def tools(connection: Connection) -> tuple[ToolUse, ...]:
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
