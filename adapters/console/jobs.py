"""What is scheduled: the page of all chats, and a chat's own part of it."""

from __future__ import annotations

import re
from collections.abc import Iterable

from aiohttp import web
from msgspec import Struct

from adapters.console.http import FIELDS, RequestRefused, parse_number
from adapters.console.language import LANGUAGE
from adapters.console.rendering import render
from adapters.console.sources import SOURCES, note
from bot.core.console_views import FIRST_JOB, JobMark, JobRow, LastFiring
from bot.core.conversation import Conversation, NotAConversation

MARK = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,9})?)-([0-9]{1,18})")


class JobText(Struct, frozen=True):
    """A job, and in the visitor's language: when it comes, how often (empty: once), its state
    (empty: it waits for its moment), and what came of it last (empty: nothing yet).
    """

    job: JobRow
    moment: str
    rule: str
    state: str
    outcome: str


def describe_jobs(request: web.Request, rows: Iterable[JobRow]) -> list[JobText]:
    sources, speech = request.app[SOURCES], request[LANGUAGE]
    now = sources.clock.now()

    def describe_outcome(last: LastFiring) -> str:
        if last.turn_id:
            return sources.explain.ending(last.outcome, chinese=speech.is_chinese)
        return speech.of("outcome", last.outcome)

    def describe(job: JobRow) -> JobText:
        is_held = job.state == "waiting" and job.due <= now
        state = "held" if is_held else job.state
        return JobText(
            job,
            moment=sources.job_moment(job, speech.bot_language),
            rule=sources.job_rule(job, speech.bot_language),
            state="" if state == "waiting" else speech.of("jobs.state", state),
            outcome=describe_outcome(job.last) if job.last else "",
        )

    return [describe(job) for job in rows]


async def cancel_job(request: web.Request, where: Conversation) -> bool:
    """Cancel the job of the form, and record it."""
    number = parse_number(request[FIELDS].get("number", ""))
    is_done = await request.app[SOURCES].cancel_job(where, number)
    outcome = f"J{number}" if is_done else f"J{number}: failed"
    note(request, "cancel", what=str(where), outcome=outcome)
    return is_done


async def show_jobs(request: web.Request) -> web.Response:
    return await _render_jobs(request)


async def cancel(request: web.Request) -> web.Response:
    """Cancel a job of any chat; the page shows the outcome."""
    try:
        where = Conversation.parse(request[FIELDS].get("where", ""))
    except NotAConversation:
        raise RequestRefused(400, "chat") from None
    return await _render_jobs(request, is_cancelled=await cancel_job(request, where))


async def _render_jobs(request: web.Request, *, is_cancelled: bool | None = None) -> web.Response:
    after = _mark(request.query.get("after", ""))
    found = await request.app[SOURCES].jobs(after, None)
    return render(
        request,
        "jobs",
        status=400 if is_cancelled is False else 200,
        is_cancelled=is_cancelled,
        jobs=None if found is None else describe_jobs(request, found.rows),
        several=found is not None and len({one.where.platform_id for one in found.rows}) > 1,
        is_first=after == FIRST_JOB,
        following="" if found is None or found.next is None else "{}-{}".format(*found.next),
    )


def _mark(text: str) -> JobMark:
    """Where a page begins; the first one for anything else."""
    return (float(found[1]), int(found[2])) if (found := MARK.fullmatch(text)) else FIRST_JOB
