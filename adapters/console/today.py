"""The first page: connections, problems, today's cost and questions, and the latest turns."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import partial

from aiohttp import web
from msgspec import Struct

from adapters.console.approvals import describe_led
from adapters.console.chats import Choice
from adapters.console.http import FIELDS, RequestRefused, redirect
from adapters.console.language import LANGUAGE, Language, minute
from adapters.console.logins import LOGINS
from adapters.console.rendering import render
from adapters.console.sources import SOURCES, note
from adapters.console.turns import OUTCOMES, describe_ending, describe_rows, tone_of
from bot.core.calendar_days import midnight
from bot.core.console_views import UNANSWERED, TurnQuery, TurnRow, WaitingCall, WaitingJoinRequest
from bot.core.conversation import Conversation, NotAConversation
from bot.core.query_results import DayCounts, UsageSum
from frostagent.types.runs import Stop

NEWEST = 12  # turns
APPROVALS = 3  # decided on this page, those that expire first


class Tile(Struct, frozen=True):
    """The number of questions with an outcome, and the filter that lists them, if there is one."""

    count: int
    words: str
    tone: str
    outcome: str


async def show_today(request: web.Request) -> web.Response:
    sources, speech = request.app[SOURCES], request[LANGUAGE]
    now = sources.clock.now()
    newest, today = sources.feed.number, midnight(now)
    day = await sources.showing.day(since=today, until=0.0)
    rows = await sources.showing.rows(TurnQuery())
    week = await sources.showing.costs(since=midnight(now, later=-7), by="day")
    state, newest_rows = (await sources.look()).state, () if rows is None else rows.rows
    names = _names(newest_rows)
    accounts = {one.account for one in state.accounts}
    several = len(accounts | {where.platform_id for where in (*names, *state.paused)}) > 1
    before = [one.usage.cost for one in week or () if float(one.name) < today]
    asks: list[WaitingCall | WaitingJoinRequest] = [*state.calls, *state.petitions]
    waiting = sorted(asks, key=lambda one: one.expires)[:APPROVALS]
    return render(
        request,
        "today",
        state=state,
        chats=_choices(speech, names, several=several, paused=state.paused),
        names=names,
        several=several,
        day=day,
        tiles=() if day is None else _tiles(request, day),
        since=minute(today),
        calls=[one for one in waiting if isinstance(one, WaitingCall)],
        petitions=[one for one in waiting if isinstance(one, WaitingJoinRequest)],
        more=max(len(asks), sources.waiting()) - len(waiting),
        asks=request.app[LOGINS].totp.is_on,
        led=partial(describe_led, speech),
        used=_used(day),
        usual=sum(before) / len(before) if before else None,
        rows=None if rows is None else describe_rows(request, rows.rows[:NEWEST]),
        now=now,
        mask=sources.mask,
        newest=newest,
    )


async def pause_chat(request: web.Request) -> web.Response:
    silent = request[FIELDS].get("silent") == "1"
    try:
        where = Conversation.parse(request[FIELDS].get("where", ""))
    except NotAConversation:
        raise RequestRefused(400, "chat") from None
    sources = request.app[SOURCES]
    done = await (sources.pause(where) if silent else sources.resume(where))
    action = "pause" if silent else "go on"
    note(request, action, what=str(where), outcome="ok" if done else "not now")
    return redirect(request, "/")


def _tiles(request: web.Request, day: DayCounts) -> list[Tile]:
    """The outcomes of the questions: the counts add up to all of them, and each tile leads to as
    many rows. Outcomes without questions have no tile, except `answered`.
    """
    counts = {Stop.ANSWERED: 0, **dict(day.turns), UNANSWERED: day.unanswered}
    order = (*OUTCOMES, *(one for one in counts if one not in OUTCOMES))
    return [
        Tile(
            count,
            describe_ending(request, outcome),
            tone_of(outcome),
            outcome if outcome in OUTCOMES else "",
        )
        for outcome in order
        if (count := counts.get(outcome, 0)) or outcome == Stop.ANSWERED
    ]


def _names(rows: Iterable[TurnRow]) -> dict[Conversation, str]:
    """The chats with recent questions, and their names; the name may be empty."""
    names: dict[Conversation, str] = {}
    for row in rows:
        name = row.group if row.where.is_group else row.name
        names[row.where] = names.get(row.where) or name
    return names


def _choices(
    speech: Language,
    names: Mapping[Conversation, str],
    *,
    several: bool,
    paused: Collection[Conversation],
) -> list[Choice]:
    """The chats that can be paused, with the account if the bot has several."""
    return [
        Choice(str(where), speech.place(where, name, account=several))
        for where, name in names.items()
        if where not in paused
    ]


def _used(day: DayCounts | None) -> UsageSum:
    models = () if day is None else day.models
    return UsageSum(
        *(sum(getattr(one, name) for _, one in models) for name in UsageSum.__struct_fields__)
    )
