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
from adapters.console.rendering import Pages
from adapters.console.routes import Access, Route, Visit
from adapters.console.sources import Sources
from bot.domain.console_views import CostSum
from bot.domain.query_results import UsageSum

DAYS = 30
LATELY = 7  # days that the forecast is made of
KINDS = {
    "day": "day",
    "chat": "conversation",
    "person": "asker",
    "model": "model",
    "tool": "tool",
}
FORMULA = "=+-@\t\r"


class Column(Struct, frozen=True):
    """A day of the chart: where it stands, and how high, in percent."""

    day: float
    left: float
    width: float
    height: float
    usage: UsageSum


class CostPages:
    """The page and its table."""

    def __init__(self, pages: Pages, sources: Sources) -> None:
        self._pages = pages
        self._sources = sources

    @property
    def routes(self) -> tuple[Route, ...]:
        """Those of this page."""
        return (
            Route("GET", "/cost", self.look, Access.LOGGED_IN),
            Route("GET", "/cost/csv", self.table, Access.LOGGED_IN),
        )

    async def look(self, visit: Visit) -> web.Response:
        """The page."""
        by = self._kind(visit)
        days = await self._read("day")
        sums = days if by == "day" else await self._read(by)
        total = _total(days or ())
        now = self._sources.clock.now()
        unpriced = [one for one in await self._read("model") or () if one.usage.unpriced]
        priced = {one.name for one in (await self._sources.look()).state.models if one.is_priced}
        accounts = {one.name.partition(":")[0] for one in sums or () if one.name}
        top = _nice(max((one.usage.cost for one in days or ()), default=0.0))
        return self._pages.show(
            visit,
            "cost",
            by=by,
            several=by == "chat" and len(accounts) > 1,
            kinds=tuple(KINDS),
            columns=None if days is None else self._columns(days, now, top),
            sums=sums,
            total=total,
            dearest=max((one.usage.cost for one in sums or ()), default=0.0) or 1.0,
            forecast=self._forecast(days or (), now),
            top=top,
            unpriced=[one.name for one in unpriced if one.name not in priced],
            before=[one for one in unpriced if one.name in priced],
            days=DAYS,
            since=minute(self._since()),
            ends=await self._sources.showing.ends(since=self._since()),
        )

    async def table(self, visit: Visit) -> web.Response:
        """The table as CSV. Names that a spreadsheet would read as formulas are quoted."""
        by = self._kind(visit)
        sums = await self._read(by)
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

    def _kind(self, visit: Visit) -> str:
        by = visit.request.query.get("by", "chat")
        return by if by in KINDS else "chat"

    async def _read(self, by: str) -> tuple[CostSum, ...] | None:
        return await self._sources.showing.costs(since=self._since(), by=KINDS[by])

    def _since(self) -> float:
        return self._sources.midnight(self._sources.clock.now(), later=1 - DAYS)

    def _columns(self, days: Sequence[CostSum], now: float, top: float) -> list[Column]:
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
            for day in [self._sources.midnight(now, later=number + 1 - DAYS)]
            for sum_ in [used.get(day, UsageSum())]
        ]

    def _forecast(self, days: Sequence[CostSum], now: float) -> UsageSum:
        """Thirty days like the last seven that are over, or those of them since the first use; like
        today where nothing was used on them. What has no known price there has none here.
        """
        since, today = self._sources.midnight(now, later=-LATELY), self._sources.midnight(now)
        begun = min((float(one.name) for one in days), default=today)
        over = [one for one in days if since <= float(one.name) < today]
        lately = _total(over or [one for one in days if float(one.name) == today])
        length = max(1, round((today - max(begun, since)) / 86_400)) if over else 1
        return replace(lately, cost=DAYS * lately.cost / length)


def _cell(number: float) -> float:
    """A number of the table, without rounding noise."""
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
