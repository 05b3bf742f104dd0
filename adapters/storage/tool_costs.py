"""The costs of tools: a request counts for the tools whose results it was the first to read, in
equal parts where its step before had several calls. All other requests, those that models make
inside tools among them, count for none. So the parts add up to the whole. Blocks.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from sqlalchemy import Connection, func, select

from adapters.storage.closed_days import midnight, parts
from adapters.storage.tables import SHARED, day_tools, usage
from adapters.storage.turn_rows import TOKENS
from bot.domain.books import UsageSum
from bot.domain.shown import CostSum


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
