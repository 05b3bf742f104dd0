"""The page of approvals: calls, requests and drafts that wait for an owner's decision."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from functools import partial
from typing import Final

from aiohttp import web

from adapters.console.guard import RequestRefused
from adapters.console.language import Language, language_of
from adapters.console.logins import Logins
from adapters.console.rendering import Pages
from adapters.console.routes import Access, Route, Visit
from adapters.console.sources import Sources, note
from bot.domain.cluster_queries import OwnerDecision, WordKind
from bot.domain.run import Led
from bot.domain.suspension import Settled

NAME = re.compile(r"([ARD])([0-9]{1,9})")
ACCOUNT = re.compile(r"[0-9]{1,18}")
KINDS: Final[Mapping[str, WordKind]] = {"A": "A", "R": "R", "D": "D"}
PATIENCE = 6.0  # seconds to wait for QQ; the request goes on if it takes longer


class ApprovalPages:
    """The page, and the word."""

    def __init__(self, pages: Pages, logins: Logins, sources: Sources) -> None:
        self._pages = pages
        self._logins = logins
        self._sources = sources

    @property
    def routes(self) -> tuple[Route, ...]:
        """Those of this page."""
        return (
            Route("GET", "/approvals", self.look, Access.LOGGED_IN),
            Route("POST", "/approvals", self.settle, Access.LOGGED_IN),
        )

    async def look(self, visit: Visit) -> web.Response:
        """The page."""
        return await self._show(visit)

    async def settle(self, visit: Visit) -> web.Response:
        """Allow or deny; the page, with what came of it."""
        found = NAME.fullmatch(visit.fields.get("name", ""))
        account = ACCOUNT.fullmatch(visit.fields.get("account", ""))
        word = visit.fields.get("allows", "")
        if found is None or account is None or word not in {"0", "1"}:
            raise RequestRefused(400, "that is no request")
        name, reason = found[0], visit.fields.get("reason", "")
        what = f"{account[0]}:{name}"  # each part of a cluster has numbers of its own
        action = "allow" if word == "1" else "deny"
        if word == "1" and (trouble := self._logins.doubt(visit.fields.get("totp", ""))):
            note(self._sources, visit, action, what=what, outcome="no code")
            return await self._show(visit, name=name, key=trouble, status=403)
        try:
            async with asyncio.timeout(PATIENCE):
                said = OwnerDecision(
                    int(account[0]), KINDS[found[1]], int(found[2]), word == "1", reason
                )
                settled = await self._sources.settle(said)
        except TimeoutError:
            settled = Settled("unanswered", "")
        outcome = "ok" if settled.kind == "done" else settled.kind
        note(self._sources, visit, action, what=what, outcome=outcome)
        done = "draft" if found[1] == "D" else "done"
        key = f"{done}.{word}" if settled.kind == "done" else settled.kind
        return await self._show(visit, name=name, key=key, settled=settled)

    async def _show(
        self,
        visit: Visit,
        *,
        name: str = "",
        key: str = "",
        settled: Settled | None = None,
        status: int = 200,
    ) -> web.Response:
        found, now = await self._sources.look(with_drafts=True), self._sources.clock.now()
        return self._pages.show(
            visit,
            "approvals",
            status=status,
            asks=self._logins.totp.is_on,
            state=found.state,
            now=now,
            of=name,
            key=key,
            settled=settled,
            led=partial(led_in, language_of(visit.request)),
            drafts=found.drafts,
            more=found.more,
        )


def led_in(speech: Language, led: Led | str) -> str:
    """Whose words led to a call; older versions wrote that down in words."""
    if isinstance(led, str):
        return led
    parts = [("people", led.names)] if led.people else []
    if led.read:
        parts.append(("read", led.read))
    comma, told = speech("list.comma"), list[str]()
    for key, names in parts:
        what = speech(f"approvals.led.{key}")
        named = speech("approvals.led.named", what=what, names=comma.join(names))
        told.append(named if names else what)
    return speech("list.and").join(told)
