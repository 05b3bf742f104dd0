"""How the bot is: accounts, models, lanes, the journal; what failed, and whom nobody hears; and
what the doctor says, who looks when he is asked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from aiohttp import web
from msgspec import Struct

from adapters.console.guard import RequestRefused
from adapters.console.language import language_of
from adapters.console.rendering import Pages, redirect
from adapters.console.routes import Access, Route, Visit
from adapters.console.sources import Sources, note
from bot.domain.console_views import Finding

SHOWN = 30  # messages that nobody heard, the last ones; chats to which something waits
LOOKS_FOR = 45.0  # seconds that the doctor has, whose checks end within 30
RESTS = 30.0  # seconds between two looks: each asks the models
OK: Final = "ok"


class Report(Struct, frozen=True):
    """The doctor's findings, when (seconds since 1970); None where he was not done in time."""

    at: float
    found: tuple[Finding, ...] | None


class HealthPages:
    """The page. The doctor looks once at a time."""

    def __init__(self, pages: Pages, sources: Sources) -> None:
        self._pages = pages
        self._sources = sources
        self._report: Report | None = None
        self._since: float | None = None  # he looks

    @property
    def routes(self) -> tuple[Route, ...]:
        """Those of this page."""
        return (
            Route("GET", "/health", self.look, Access.LOGGED_IN),
            Route("POST", "/health/doctor", self.examine, Access.LOGGED_IN, lasts=True),
        )

    async def look(self, visit: Visit) -> web.Response:
        """The page."""
        state, explain = (await self._sources.look()).state, self._sources.explain
        chinese = language_of(visit.request).is_chinese
        ignored = [
            (
                one,
                explain.reason(one.reason, chinese=chinese),
                explain.setting(one.reason, chinese=chinese),
            )
            for one in reversed(state.ignored[-SHOWN:])
        ]
        limits = self._sources.limits()
        return self._pages.show(
            visit,
            "health",
            state=state,
            limits=limits,
            ignored=ignored,
            most=SHOWN,
            has_doctor=self._sources.doctor is not None,
            report=self._report,
            since=self._since,
        )

    async def examine(self, visit: Visit) -> web.Response:
        """Let the doctor look again, and go back to what he says; whoever asks meanwhile, or right
        after it, gets what there is.
        """
        if (doctor := self._sources.doctor) is None:
            raise RequestRefused(404, "there is no doctor here")
        now, before = self._sources.clock.now(), self._report
        if self._since is None and (before is None or now - before.at >= RESTS):
            self._since = now
            try:
                async with asyncio.timeout(LOOKS_FOR):
                    found: Sequence[Finding] | None = await doctor()
            except TimeoutError:
                found = None
            finally:
                self._since = None
            self._report = Report(self._sources.clock.now(), None if found is None else (*found,))
            note(self._sources, visit, "doctor", outcome=_outcome(found))
        return redirect(visit, "/health#doctor")


def _outcome(found: Sequence[Finding] | None) -> str:
    if found is None:
        return "not finished"
    return f"{sum(one.verdict != OK for one in found)} of {len(found)} to mend"
