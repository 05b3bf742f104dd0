"""The pages others may look at: whether the bot lives, can answer, and its counts."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from adapters.metrics.metrics import Metrics
from adapters.metrics.vitals import Vitals, VitalsCollector
from adapters.onebot.peers import Peers
from bot.wiring.service import Rooms
from config.settings import Settings


@asynccontextmanager
async def open_web(
    settings: Settings, *, metrics: Metrics, rooms: Rooms, peers: Peers
) -> AsyncIterator[None]:
    """Show whether the bot lives, can answer, and what it counts; not with WEB_PORT=0."""

    def look() -> Vitals:
        online = [account.online is not False for account in peers.accounts()]
        lanes = rooms.on.lanes
        return Vitals(
            lanes=lanes.active,
            queued=max(0, lanes.waiting - lanes.active),
            online=sum(online),
            offline=len(online) - sum(online),
            duplicates=rooms.stages.door.duplicates,
            overflow=rooms.asking.turnstile.overflow,
            reconnects=peers.reconnects,
        )

    def show() -> bytes:
        return metrics.render() + VitalsCollector(look()).render()

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
