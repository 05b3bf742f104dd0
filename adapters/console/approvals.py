"""The page of approvals: calls, requests and drafts that wait for an owner's decision."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from functools import partial
from typing import Final

from aiohttp import web

from adapters.console.http import FIELDS, RequestRefused
from adapters.console.language import LANGUAGE, Language
from adapters.console.logins import LOGINS
from adapters.console.rendering import render
from adapters.console.sources import SOURCES, note
from bot.core.console_views import DecisionKind, OwnerDecision
from bot.core.settlement import Settled
from frostagent.types.runs import Led

NAME = re.compile(r"([ARD])([0-9]{1,9})")
ACCOUNT = re.compile(r"[0-9]{1,18}")
KINDS: Final[Mapping[str, DecisionKind]] = {"A": "A", "R": "R", "D": "D"}
PATIENCE = 6.0  # seconds to wait for QQ; the request continues if it takes longer


async def show_approvals(request: web.Request) -> web.Response:
    return await _render(request)


async def decide(request: web.Request) -> web.Response:
    """Apply a decision; the page shows its outcome."""
    fields = request[FIELDS]
    found = NAME.fullmatch(fields.get("name", ""))
    account = ACCOUNT.fullmatch(fields.get("account", ""))
    word = fields.get("allows", "")
    if found is None or account is None or word not in {"0", "1"}:
        raise RequestRefused(400, "decision")
    name, reason = found[0], fields.get("reason", "")
    what = f"{account[0]}:{name}"  # each part of a cluster has numbers of its own
    action = "allow" if word == "1" else "deny"
    if word == "1" and (trouble := request.app[LOGINS].doubt(fields.get("totp", ""))):
        note(request, action, what=what, outcome="no code")
        return await _render(request, name=name, key=trouble, status=403)
    said = OwnerDecision(int(account[0]), KINDS[found[1]], int(found[2]), word == "1", reason)
    try:
        async with asyncio.timeout(PATIENCE):
            settled = await request.app[SOURCES].settle(said)
    except TimeoutError:
        settled = Settled("unanswered", "")
    outcome = "ok" if settled.kind == "done" else settled.kind
    note(request, action, what=what, outcome=outcome)
    done = "draft" if found[1] == "D" else "done"
    key = f"{done}.{word}" if settled.kind == "done" else settled.kind
    return await _render(request, name=name, key=key, settled=settled)


async def _render(
    request: web.Request,
    *,
    name: str = "",
    key: str = "",
    settled: Settled | None = None,
    status: int = 200,
) -> web.Response:
    sources = request.app[SOURCES]
    found, now = await sources.look_with_drafts(), sources.clock.now()
    return render(
        request,
        "approvals",
        status=status,
        asks=request.app[LOGINS].totp.is_on,
        state=found.state,
        now=now,
        of=name,
        key=key,
        settled=settled,
        led=partial(describe_led, request[LANGUAGE]),
        drafts=found.drafts,
        more=found.more,
    )


def describe_led(speech: Language, led: Led | str) -> str:
    """Whose words led to a call; older versions stored this as text."""
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
