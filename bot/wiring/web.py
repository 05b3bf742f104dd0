"""The pages others may look at: whether the bot lives, can answer, and its counts."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Final

from adapters.metrics.metrics import Metrics
from adapters.metrics.vitals import Today, Vitals
from bot.conversation.intake import hush, restraint
from bot.conversation.queue import questions, turnstile
from bot.memory.spending import ALL, Spending
from bot.policy.limits import NO_CAP, rung_of
from bot.speaking.screening import Screen
from bot.wiring.line import Connections
from bot.wiring.service import Rooms
from bot.wiring.standing import waiting_of
from config.settings import Settings

REASONS: Final[Mapping[str, str]] = {
    turnstile.USER: "user_rate",
    turnstile.GROUP: "group_rate",
    turnstile.DAY: "day",
    hush.QUIET: "quiet",
    hush.SILENCED: "silenced",
    hush.HELD: "new_group",
    restraint.MUTED: "muted",
    restraint.LOOP: "loop",
    restraint.WORDS: "words",
    restraint.STALE: "stale",
    questions.FULL: "full",
}
"""In a word, why a message is not answered."""


STANDING_BY: Final = "standing by: another worker is at work"


@asynccontextmanager
async def open_web(
    settings: Settings, *, metrics: Metrics, rooms: Rooms, spending: Spending, peers: Connections
) -> AsyncIterator[None]:
    """Show whether the bot lives, can answer, and what it counts; not with WEB_PORT=0."""

    def show() -> bytes:
        from adapters.metrics.exposition import render

        return render(metrics, vitals_of(rooms, spending, peers))

    match settings.web_port:
        case 0:
            yield
        case port:
            from adapters.web.readiness import Attendance
            from adapters.web.server import WebServer

            # A default that is taken is no reason to be silent in QQ; what somebody asked for must
            # be had.
            asked_for = "web_port" in settings.model_fields_set
            ready = Attendance(
                peers.accounts,
                stopping=lambda: rooms.on.lanes.finishing,
                refused=lambda: peers.refused,
            )
            async with WebServer(
                host=settings.web_host,
                port=port,
                ready=ready,
                metrics=show,
                required=asked_for,
            ):
                yield


@asynccontextmanager
async def open_standby_web(settings: Settings) -> AsyncIterator[None]:
    """The same for a worker that stands by: it lives, and is not ready."""
    from adapters.web.readiness import Readiness
    from adapters.web.server import WebServer

    if not settings.web_port:
        yield
        return
    async with WebServer(
        host=settings.web_host,
        port=settings.web_port,
        ready=lambda: Readiness(ready=False, reason=STANDING_BY, accounts=()),
        metrics=bytes,
        required="web_port" in settings.model_fields_set,
    ):
        yield


def vitals_of(rooms: Rooms, spending: Spending, peers: Connections) -> Vitals:
    """The figures of now."""
    online = [account.online is not False for account in peers.accounts()]
    lanes, screen = rooms.on.lanes, rooms.on.outbox.screened
    return Vitals(
        lanes=lanes.active,
        queued=max(0, lanes.waiting - lanes.active),
        online=sum(online),
        offline=len(online) - sum(online),
        duplicates=rooms.stages.door.duplicates,
        overflow=rooms.asking.turnstile.overflow,
        reconnects=peers.reconnects,
        withheld=screen.withheld if isinstance(screen, Screen) else 0,
        waiting=waiting_of(rooms.on, rooms.answering, rooms.stages.petitions),
        ended=rooms.answering.requests.ended,
        commands=rooms.commands.taken,
        today=today_of(spending),
    )


def today_of(spending: Spending) -> Today | None:
    """What everybody took today; None until it is known."""
    if not spending.is_known:
        return None
    taken, cap = spending.taken(ALL), spending.cap(ALL)
    used = cap.used(taken)
    return Today(
        cost=taken.known_cost,
        tokens=taken.tokens,
        reserved=spending.reserved.tokens,
        rung=rung_of(used, is_owner=False),
        used=used if cap != NO_CAP else None,
    )
