"""How the latest calls of tools went. Blocks."""

from __future__ import annotations

from sqlalchemy import Connection, select

from adapters.storage.tables import tool_calls
from bot.domain.inspection import ToolUse

LATEST = 2000  # calls of all tools together
NEARLY = 0.95
FINE = {"", "ok"}  # those that did not end have no code


def tools(connection: Connection) -> tuple[ToolUse, ...]:
    """The tools that were called lately, by name."""
    columns = tool_calls.c.name, tool_calls.c.code, tool_calls.c.seconds
    latest = select(*columns).order_by(tool_calls.c.id.desc()).limit(LATEST)
    codes, times = dict[str, list[str]](), dict[str, list[float]]()
    for name, code, seconds in connection.execute(latest):
        codes.setdefault(name, []).append(code)
        if seconds is not None:
            times.setdefault(name, []).append(seconds)
    told = []
    for name, those in sorted(codes.items()):
        failed, taken = (
            [code for code in those if code not in FINE],
            sorted(times.get(name, (0.0,))),
        )
        slow = taken[min(len(taken) - 1, int(NEARLY * len(taken)))]
        told.append(ToolUse(name, len(those), len(failed), failed[0] if failed else "", slow))
    return tuple(told)
