"""The page of costs: by day, chat, person, model and tool; and as CSV."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence

from aiohttp import web
from msgspec import Struct
from msgspec.structs import replace

from adapters.console.language import date, minute
from adapters.console.rendering import render
from adapters.console.sources import SOURCES, Sources
from bot.core.calendar_days import midnight
from bot.core.console_views import CostSum
from bot.core.query_results import UsageSum

DAYS = 30
LATELY = 7  # days that the forecast is based on
KINDS = {
    "day": "day",
    "chat": "conversation",
    "person": "asker",
    "model": "model",
    "tool": "tool",
}
FORMULA = "=+-@\t\r"


class Column(Struct, frozen=True):
    """A day of the chart: its position and height in percent."""

    day: float
    left: float
    width: float
    height: float
    usage: UsageSum


async def show_costs(request: web.Request) -> web.Response:
    sources, by = request.app[SOURCES], _kind(request)
    days = await _read(sources, "day")
    sums = days if by == "day" else await _read(sources, by)
    total = _total(days or ())
    now = sources.clock.now()
    unpriced = [one for one in await _read(sources, "model") or () if one.usage.unpriced]
    priced = {one.name for one in (await sources.look()).state.models if one.is_priced}
    accounts = {one.name.partition(":")[0] for one in sums or () if one.name}
    top = _nice(max((one.usage.cost for one in days or ()), default=0.0))
    return render(
        request,
        "cost",
        by=by,
        several=by == "chat" and len(accounts) > 1,
        kinds=tuple(KINDS),
        columns=None if days is None else _columns(days, now, top),
        sums=sums,
        total=total,
        dearest=max((one.usage.cost for one in sums or ()), default=0.0) or 1.0,
        forecast=_forecast(days or (), now),
        top=top,
        unpriced=[one.name for one in unpriced if one.name not in priced],
        before=[one for one in unpriced if one.name in priced],
        days=DAYS,
        since=minute(_since(sources)),
        ends=await sources.showing.ends(since=_since(sources)),
    )


async def send_csv(request: web.Request) -> web.Response:
    """The table as CSV. Names that a spreadsheet would take for formulas are quoted."""
    by = _kind(request)
    sums = await _read(request.app[SOURCES], by)
    if sums is None:
        return web.Response(status=503, text="the journal cannot be read now")
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow((by, *UsageSum.__struct_fields__))
    for one in sums:
        name = date(float(one.name)) if by == "day" else "…" if one.others else one.name
        name = f"'{name}" if name[:1] and name[0] in FORMULA else name
        writer.writerow(
            (name, *(_cell(getattr(one.usage, field)) for field in UsageSum.__struct_fields__))
        )
    answer = web.Response(text=out.getvalue(), content_type="text/csv", charset="utf-8")
    answer.headers["Content-Disposition"] = f'attachment; filename="cost-{by}.csv"'
    return answer


def _kind(request: web.Request) -> str:
    by = request.query.get("by", "chat")
    return by if by in KINDS else "chat"


async def _read(sources: Sources, by: str) -> tuple[CostSum, ...] | None:
    return await sources.showing.costs(since=_since(sources), by=KINDS[by])


def _since(sources: Sources) -> float:
    return midnight(sources.clock.now(), later=1 - DAYS)


def _columns(days: Sequence[CostSum], now: float, top: float) -> list[Column]:
    used = {float(one.name): one.usage for one in days}
    width = 100 / DAYS
    return [
        Column(
            day,
            round(number * width, 3),
            round(width * 0.7, 3),
            round(100 * sum_.cost / top, 2),
            sum_,
        )
        for number in range(DAYS)
        for day in [midnight(now, later=number + 1 - DAYS)]
        for sum_ in [used.get(day, UsageSum())]
    ]


def _forecast(days: Sequence[CostSum], now: float) -> UsageSum:
    """Thirty days like the last seven complete days, or those of them since the first use; like
    today if nothing was used on them. Usage without a known price stays without one.
    """
    since, today = midnight(now, later=-LATELY), midnight(now)
    begun = min((float(one.name) for one in days), default=today)
    over = [one for one in days if since <= float(one.name) < today]
    lately = _total(over or [one for one in days if float(one.name) == today])
    length = max(1, round((today - max(begun, since)) / 86_400)) if over else 1
    return replace(lately, cost=DAYS * lately.cost / length)


def _cell(number: float) -> float:
    return round(number, 9)


def _nice(most: float) -> float:
    """The top of a scale with room for `most`: 1, 2 or 5 times a power of ten; 1 if it is 0."""
    if most <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(most))
    return next(times * power for times in (1, 2, 5, 10) if times * power >= most * (1 - 1e-9))


def _total(sums: Sequence[CostSum]) -> UsageSum:
    fields = UsageSum.__struct_fields__
    return UsageSum(*(sum(getattr(one.usage, name) for one in sums) for name in fields))
