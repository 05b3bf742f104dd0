"""Chats, and one chat as in QQ with the fate of its messages: read, export, erase. What is
scheduled there, and what a group says to people who join and leave.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Final, Literal
from urllib.parse import quote

from aiohttp import web
from msgspec import Struct

from adapters.console import jobs
from adapters.console.http import FIELDS, RequestRefused, parse_number
from adapters.console.language import LANGUAGE
from adapters.console.logins import LOGINS
from adapters.console.rendering import render, render_missing
from adapters.console.sources import SOURCES, note
from bot.core.console_views import FIRST_JOB, Chat, ChatLine
from bot.core.conversation import Conversation, NotAConversation
from frostagent.types.errors import BotError

MOST = 20_000  # messages of a file
LONGEST: Final = 200  # characters of a greeting: MAX_TEMPLATE of bot/welcome.py
CHANGES: Final[Mapping[str, Literal["joined", "left"]]] = {"joined": "joined", "left": "left"}
CHOICES: Final = frozenset({"run", "off", "usual"})  # greetings that are no template
NOTHING: Final[Mapping[str, str]] = {}
ERASED_WITHIN: Final = 120.0
"""Seconds. A cancelled erasure would leave data in memory that is no longer in the journal."""


class Choice(Struct, frozen=True):
    value: str
    words: str


async def find_chat_choices(request: web.Request, chosen: str = "") -> list[Choice]:
    """The most recent chats, and the `chosen` one, so that no number must be typed."""
    speech = request[LANGUAGE]
    found = await request.app[SOURCES].showing.chats(0)
    rows = () if found is None else found.rows
    has_several = len({row.where.platform_id for row in rows}) > 1
    offered = [
        Choice(
            str(one.where),
            speech.place(
                one.where, one.group if one.where.is_group else one.name, account=has_several
            ),
        )
        for one in rows
    ]
    if chosen and chosen not in {one.value for one in offered}:
        offered.append(Choice(chosen, speech.place_named(chosen)))
    return offered


async def show_chats(request: web.Request) -> web.Response:
    before = parse_number(request.query.get("before", ""))
    found = await request.app[SOURCES].showing.chats(before)
    told = found and [(one, quote(str(one.where), safe="")) for one in found.rows]
    accounts = {one.where.platform_id for one in found.rows} if found else ()
    return render(
        request, "chats", rows=told, several=len(accounts) > 1, following=found and found.next
    )


async def show_chat(request: web.Request) -> web.Response:
    return await _render_chat(request)


async def send_file(request: web.Request) -> web.Response:
    """Send the latest messages of a chat as JSON lines, oldest first."""
    if (where := _where(request)) is None:
        return render_missing(request)
    lines, before = list[ChatLine](), 0
    while len(lines) < MOST:
        found = await request.app[SOURCES].showing.chat(where, before)
        if found is None:
            return render_missing(request, is_away=True)
        lines[:0] = found.lines
        if not (before := found.next or 0):
            break
    note(request, "export", what=str(where))
    answer = web.Response(
        text="".join(f"{_json(line)}\n" for line in lines), content_type="application/jsonl"
    )
    name = str(where).replace(":", "-")
    answer.headers["Content-Disposition"] = f'attachment; filename="chat-{name}.jsonl"'
    return answer


async def forget_chat(request: web.Request) -> web.Response:
    """Erase a chat for good if its number was typed; the page shows the outcome."""
    if (where := _where(request)) is None:
        return render_missing(request)
    outcome, rows = await _erase(request, where)
    # the number of a private chat would name the erased person
    what = str(where) if where.is_group else "private"
    note(request, "forget", what=what, outcome=outcome or "ok")
    key = f"chats.forget.{outcome or 'done'}" if outcome not in ("code", "wait") else ""
    return await _render_chat(request, key or f"totp.{outcome}", rows, 400 if outcome else 200)


async def cancel_job(request: web.Request) -> web.Response:
    """Cancel a job of the chat."""
    if (where := _where(request)) is None:
        return render_missing(request)
    is_done = await jobs.cancel_job(request, where)
    key = "jobs.cancelled" if is_done else "jobs.failed"
    return await _render_chat(request, key, status=200 if is_done else 400)


async def change_greeting(request: web.Request) -> web.Response:
    """Change what a group says if someone joins or leaves; the page shows the outcome."""
    if (where := _where(request)) is None or not where.is_group:
        return render_missing(request)
    fields = request[FIELDS]
    do, words = fields.get("do", ""), " ".join(fields.get("words", "").split())
    change = CHANGES.get(fields.get("change", ""))
    typed: dict[str, str] = {fields.get("change", ""): words} if do == "words" else {}
    if change is None or do not in {"words", *CHOICES}:
        raise RequestRefused(400, "action")
    if do == "words" and not 0 < len(words) <= LONGEST:
        key = "greetings.long" if words else "greetings.empty"
        return await _render_chat(request, key, status=400, typed=typed)
    is_done = await request.app[SOURCES].greet(where, change, words if do == "words" else do)
    action = "welcome" if change == "joined" else "farewell"
    note(request, action, what=str(where), outcome="ok" if is_done else "not now")
    if is_done:
        return await _render_chat(request, "greetings.done")
    return await _render_chat(request, "greetings.failed", status=400, typed=typed)


async def _erase(request: web.Request, where: Conversation) -> tuple[str, int]:
    """Return the reason for a refusal, or an empty string, and the number of rows."""
    if request[FIELDS].get("name", "").strip() != str(where.session_id):
        return "name", 0
    if doubt := request.app[LOGINS].doubt(request[FIELDS].get("totp", "")):
        return doubt, 0
    try:
        async with asyncio.timeout(ERASED_WITHIN):
            return "", await request.app[SOURCES].forget(where)
    except (BotError, TimeoutError):
        return "failed", 0


async def _render_chat(
    request: web.Request,
    key: str = "",
    rows: int = 0,
    status: int = 200,
    *,
    typed: Mapping[str, str] = NOTHING,
) -> web.Response:
    """`typed` are texts of greetings that were not taken, by the change that they are about."""
    if (where := _where(request)) is None:
        return render_missing(request)
    sources, chinese = request.app[SOURCES], request[LANGUAGE].is_chinese
    found = await sources.showing.chat(where, parse_number(request.query.get("before", "")))
    if found is None:
        return render_missing(request, is_away=True)
    scheduled = await sources.jobs(FIRST_JOB, where)
    return render(
        request,
        "chat",
        status=status,
        key=key,
        count=rows,
        asks=request.app[LOGINS].totp.is_on,
        one=found,
        called=found.group or _person(found),
        lines=[
            (line, sources.explain.reason(line.reason, chinese=chinese) if line.reason else "")
            for line in found.lines
        ],
        link=quote(str(where), safe=""),
        jobs=None if scheduled is None else jobs.describe_jobs(request, scheduled.rows),
        group=await sources.group(where) if where.is_group else None,
        typed=typed,
        longest=LONGEST,
        estimate=sources.estimate,
        repeated=sources.weigh(found.told, found.light) if found.told else None,
    )


def _person(chat: Chat) -> str:
    """The name of the person in a private chat, if they wrote recently."""
    names = (line.name for line in reversed(chat.lines) if not line.is_own and line.name)
    return "" if chat.where.is_group else next(names, "")


def _where(request: web.Request) -> Conversation | None:
    try:
        return Conversation.parse(request.match_info["where"])
    except NotAConversation:
        return None


def _json(line: ChatLine) -> str:
    """A line of the export; a recalled message has no text."""
    told = {
        "at": line.at,
        "sender": line.sender,
        "name": line.name,
        "text": "" if line.is_gone else line.text,
        "own": line.is_own,
        "recalled": line.is_gone,
        "why": line.reason,
        "turn": line.turn_id,
    }
    return json.dumps(told, ensure_ascii=False)
