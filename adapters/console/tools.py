"""The tools: which can be used, why others cannot, for whom, how their latest calls went; and a
call of one that changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

from aiohttp import web

from adapters.console.rendering import Pages
from adapters.console.routes import Access, Route, Visit
from adapters.console.sources import Sources, note
from adapters.console.tool_forms import arguments_of, fields_of
from bot.domain.console_views import ToolAnswer, ToolState

LONGEST = 300  # characters of an error
NOTHING: Mapping[str, str] = {}


class ToolPages:
    """The page, and that of one of them. One call goes on at a time."""

    def __init__(self, pages: Pages, sources: Sources) -> None:
        self._pages = pages
        self._sources = sources
        self._is_calling = False

    @property
    def routes(self) -> tuple[Route, ...]:
        """Those of these pages."""
        return (
            Route("GET", "/tools", self.look, Access.LOGGED_IN),
            Route("GET", "/tools/{tool}", self.open, Access.LOGGED_IN),
            Route("POST", "/tools/{tool}", self.call, Access.LOGGED_IN, lasts=True),
        )

    async def look(self, visit: Visit) -> web.Response:
        """The page; those that cannot be used first, then those that fail."""
        found = await self._sources.showing.tools()
        used = {one.name: one for one in found or ()}

        def tone(one: ToolState) -> str:
            health = used[one.name].health if one.name in used else "good"
            if one.reason or health == "bad":
                return "bad"
            return "warn" if one.permission == "deny" else health

        def place(one: ToolState) -> tuple[bool, int, str]:
            return not one.reason, ("bad", "warn", "good").index(tone(one)), one.name

        told = [
            (one, used.get(one.name), tone(one)) for one in sorted(self._sources.tools(), key=place)
        ]
        mask = self._sources.mask  # before what is long is cut
        return self._pages.show(
            visit, "tools", tools=told, is_away=found is None, mask=mask, most=LONGEST
        )

    async def open(self, visit: Visit) -> web.Response:
        """One tool, with a form for its arguments where it may be called from here."""
        one = self._find(visit)
        return self._missing(visit) if one is None else self._show(visit, one)

    async def call(self, visit: Visit) -> web.Response:
        """Call it with what was typed, and show what it gave."""
        if (one := self._find(visit)) is None:
            return self._missing(visit)
        if one.unfit:
            self._note(visit, one, f"refused: {one.unfit}")
            return self._show(visit, one, status=403)
        if self._is_calling:
            return self._show(visit, one, typed=visit.fields, is_busy=True, status=409)
        self._is_calling = True
        try:
            arguments = arguments_of(fields_of(one.parameters, visit.fields))
            answer = await self._sources.call(one.name, arguments)
        finally:
            self._is_calling = False
        self._note(visit, one, answer.code)
        return self._show(visit, one, typed=visit.fields, answer=answer)

    def _find(self, visit: Visit) -> ToolState | None:
        name = visit.at["tool"]
        return next((one for one in self._sources.tools() if one.name == name), None)

    def _missing(self, visit: Visit) -> web.Response:
        return self._pages.show(visit, "missing", status=404, is_away=False)

    def _note(self, visit: Visit, one: ToolState, outcome: str) -> None:
        note(self._sources, visit, "call tool", what=one.name, outcome=outcome)

    def _show(
        self,
        visit: Visit,
        one: ToolState,
        *,
        typed: Mapping[str, str] = NOTHING,
        answer: ToolAnswer | None = None,
        is_busy: bool = False,
        status: int = 200,
    ) -> web.Response:
        return self._pages.show(
            visit,
            "tool",
            status=status,
            one=one,
            fields=() if one.unfit else fields_of(one.parameters, typed),
            answer=answer,
            is_busy=is_busy,
        )
