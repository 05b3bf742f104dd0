"""The page of health: accounts, models, lanes, the journal, failures, ignored messages, and the
doctor's findings on request.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from aiohttp import web
from msgspec import Struct

from adapters.console.http import RequestRefused, redirect
from adapters.console.language import LANGUAGE
from adapters.console.rendering import render
from adapters.console.sources import SOURCES, note
from bot.core.console_views import Finding

SHOWN = 30  # latest ignored messages; chats with a waiting outbox
LOOKS_FOR = 45.0  # seconds for the doctor, whose checks take at most 30
RESTS = 30.0  # seconds between two runs, because each asks the models
OK: Final = "ok"


class Report(Struct, frozen=True):
    """The doctor's findings and their time (seconds since 1970); None if it took too long."""

    at: float
    found: tuple[Finding, ...] | None


@dataclass(slots=True)
class Doctor:
    """The latest report, and since when the doctor has been running."""

    report: Report | None = None
    since: float | None = None


DOCTOR: Final = web.AppKey("doctor", Doctor)


async def show_health(request: web.Request) -> web.Response:
    sources, doctor = request.app[SOURCES], request.app[DOCTOR]
    state, explain = (await sources.look()).state, sources.explain
    chinese = request[LANGUAGE].is_chinese
    ignored = [
        (
            one,
            explain.reason(one.reason, chinese=chinese),
            explain.setting(one.reason, chinese=chinese),
        )
        for one in reversed(state.ignored[-SHOWN:])
    ]
    return render(
        request,
        "health",
        state=state,
        limits=sources.limits(),
        ignored=ignored,
        most=SHOWN,
        has_doctor=sources.doctor is not None,
        report=doctor.report,
        since=doctor.since,
    )


async def run_doctor(request: web.Request) -> web.Response:
    """Run the doctor, unless it is running or has just finished; then return to the report."""
    sources, doctor = request.app[SOURCES], request.app[DOCTOR]
    if sources.doctor is None:
        raise RequestRefused(404, "doctor")
    now, before = sources.clock.now(), doctor.report
    if doctor.since is None and (before is None or now - before.at >= RESTS):
        doctor.since = now
        try:
            async with asyncio.timeout(LOOKS_FOR):
                found: Sequence[Finding] | None = await sources.doctor()
        except TimeoutError:
            found = None
        finally:
            doctor.since = None
        doctor.report = Report(sources.clock.now(), None if found is None else (*found,))
        note(request, "doctor", outcome=_outcome(found))
    return redirect(request, "/health#doctor")


def _outcome(found: Sequence[Finding] | None) -> str:
    if found is None:
        return "not finished"
    return f"{sum(one.verdict != OK for one in found)} of {len(found)} to mend"
