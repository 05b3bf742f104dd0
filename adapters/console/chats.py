"""Conversations, and one as in QQ, with what became of its messages: to read, to take away as a
file, and to forget.
"""

from __future__ import annotations

import asyncio
import json
from urllib.parse import quote

from aiohttp import web

from adapters.console.language import language_of
from adapters.console.logins import Logins
from adapters.console.rendering import Pages
from adapters.console.routes import Access, Route, Visit
from adapters.console.sources import Sources, note
from adapters.console.turns import number_in
from bot.domain.console_views import Chat, ChatLine
from bot.domain.errors import BotError
from bot.domain.events import Conversation, NotAConversation

MOST = 20_000  # messages of a file
ERASED_WITHIN = 120.0  # seconds: what is broken off leaves in memory what the journal has lost


class ChatPages:
    """The list, and one of it."""

    def __init__(self, pages: Pages, logins: Logins, sources: Sources) -> None:
        self._pages = pages
        self._logins = logins
        self._sources = sources

    @property
    def routes(self) -> tuple[Route, ...]:
        """Those of these pages."""
        return (
            Route("GET", "/chats", self.rows, Access.LOGGED_IN),
            Route("GET", "/chats/{where}", self.look, Access.LOGGED_IN),
            Route("GET", "/chats/{where}/file", self.file, Access.LOGGED_IN),
            Route("POST", "/chats/{where}/forget", self.forget, Access.LOGGED_IN, lasts=True),
        )

    async def rows(self, visit: Visit) -> web.Response:
        """The conversations, the last spoken in first."""
        found = await self._sources.showing.chats(number_in(visit.request.query.get("before", "")))
        told = found and [(one, quote(str(one.where), safe="")) for one in found.rows]
        accounts = {one.where.platform_id for one in found.rows} if found else ()
        return self._pages.show(
            visit,
            "chats",
            rows=told,
            several=len(accounts) > 1,
            following=found and found.next,
        )

    async def look(self, visit: Visit) -> web.Response:
        """One conversation."""
        return await self._show(visit)

    async def file(self, visit: Visit) -> web.Response:
        """The newest messages of one, the oldest first, a line of JSON each."""
        if (where := _where(visit)) is None:
            return self._pages.show(visit, "missing", status=404, is_away=False)
        lines, before = list[ChatLine](), 0
        while len(lines) < MOST:
            found = await self._sources.showing.chat(where, before)
            if found is None:
                return self._pages.show(visit, "missing", status=503, is_away=True)
            lines[:0] = found.lines
            if not (before := found.next or 0):
                break
        note(self._sources, visit, "export", what=str(where))
        answer = web.Response(
            text="".join(f"{_plain(line)}\n" for line in lines), content_type="application/jsonl"
        )
        name = str(where).replace(":", "-")
        answer.headers["Content-Disposition"] = f'attachment; filename="chat-{name}.jsonl"'
        return answer

    async def forget(self, visit: Visit) -> web.Response:
        """Erase one for good, where its number was typed; the page, with what came of it."""
        if (where := _where(visit)) is None:
            return self._pages.show(visit, "missing", status=404, is_away=False)
        outcome, rows = await self._forget(visit, where)
        # Else what was just erased would name a person again.
        what = str(where) if where.is_group else "private"
        note(self._sources, visit, "forget", what=what, outcome=outcome or "ok")
        key = f"chats.forget.{outcome or 'done'}" if outcome not in ("code", "wait") else ""
        return await self._show(visit, key or f"totp.{outcome}", rows, 400 if outcome else 200)

    async def _forget(self, visit: Visit, where: Conversation) -> tuple[str, int]:
        if visit.fields.get("name", "").strip() != str(where.session_id):
            return "name", 0
        if doubt := self._logins.doubt(visit.fields.get("totp", "")):
            return doubt, 0
        try:
            async with asyncio.timeout(ERASED_WITHIN):
                return "", await self._sources.forget(where)
        except (BotError, TimeoutError):
            return "failed", 0

    async def _show(
        self, visit: Visit, key: str = "", rows: int = 0, status: int = 200
    ) -> web.Response:
        if (where := _where(visit)) is None:
            return self._pages.show(visit, "missing", status=404, is_away=False)
        before = number_in(visit.request.query.get("before", ""))
        found = await self._sources.showing.chat(where, before)
        if found is None:
            return self._pages.show(visit, "missing", status=503, is_away=True)
        return self._pages.show(
            visit,
            "chat",
            status=status,
            key=key,
            count=rows,
            asks=self._logins.totp.is_on,
            one=found,
            called=found.group or _person(found),
            lines=[(line, self._why(visit, line)) for line in found.lines],
            link=quote(str(where), safe=""),
            estimate=self._sources.estimate,
            repeated=self._sources.weigh(found.told, found.light) if found.told else None,
        )

    def _why(self, visit: Visit, line: ChatLine) -> str:
        chinese = language_of(visit.request).is_chinese
        return self._sources.explain.reason(line.reason, chinese=chinese) if line.reason else ""


def _person(chat: Chat) -> str:
    """The name of whoever a private chat is with, if they said anything lately."""
    names = (line.name for line in reversed(chat.lines) if not line.is_own and line.name)
    return "" if chat.where.is_group else next(names, "")


def _where(visit: Visit) -> Conversation | None:
    try:
        return Conversation.parse(visit.at["where"])
    except NotAConversation:
        return None


def _plain(line: ChatLine) -> str:
    """A line of the file; of what was recalled the words are not told."""
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
