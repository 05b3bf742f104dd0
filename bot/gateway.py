"""The other composition root: a gateway holds sockets and nothing else (BOT_ROLE=gateway).

adapters/onebot --events--> adapters/broker -> RabbitMQ -> a worker (bot/app.py)
                <--actions-                <-
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from adapters.broker.gateway import Gateway
from adapters.onebot.peers import PeerRegistry
from adapters.onebot.sockets import Sockets
from adapters.web.readiness import Attendance
from adapters.web.server import WebServer
from bot.cluster.broker import build_gateway
from bot.domain.cancellation import background
from bot.domain.language import Language, Pair
from bot.domain.masking import text_for_log
from bot.runtime.clock import RandomIds, SystemClock
from config.settings import Settings

LAST_EVENTS: Final = 5.0  # seconds at the end for what the broker has not confirmed

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Held:
    """A gateway at work: its accounts are the `peers`, its events go out by the `gateway`; it
    listens on a port, 0 in forward mode.
    """

    port: int
    peers: PeerRegistry
    gateway: Gateway
    ready: Attendance


@asynccontextmanager
async def open_gateway(settings: Settings) -> AsyncIterator[Held]:
    """Hold sockets while the block runs.

    At the end the sockets close first, then what came over them is published, within 5 s. Raises
    ConfigError, inside a group, for a port that is taken and for a broker of another cluster.
    """
    clock, ids = SystemClock(), RandomIds()
    sockets = Sockets(
        host=settings.onebot_host,
        port=settings.onebot_port,
        url=settings.onebot_url if settings.onebot_mode == "forward" else "",
        token=settings.access_tokens.common,
        account_tokens=settings.access_tokens.accounts,
        pass_urls=settings.media_urls == "pass",
        clock=clock,
        ids=ids,
    )
    gateway = build_gateway(settings, sockets, clock=clock, ids=ids, trouble=_log)
    async with background(gateway.run()):
        try:
            async with sockets.open(gateway) as port:
                held = Held(port, sockets.peers, gateway, _attendance(sockets.peers, gateway))
                async with _open_web(settings, held):
                    yield held
        finally:
            await _publish_the_last(gateway)


def _log(line: Pair) -> None:
    logger.warning(text_for_log(line[Language.ENGLISH]))


async def _publish_the_last(gateway: Gateway) -> None:
    try:
        async with asyncio.timeout(LAST_EVENTS):
            await gateway.wait_published()
    except TimeoutError:
        logger.warning("%d events are lost: the broker did not take them", gateway.waiting)


def _attendance(peers: PeerRegistry, gateway: Gateway) -> Attendance:
    return Attendance(
        peers.accounts,
        refused=lambda: peers.refused,
        cut_off=lambda: "" if gateway.is_up else "the broker cannot be reached",
    )


@asynccontextmanager
async def _open_web(settings: Settings, held: Held) -> AsyncIterator[None]:
    """/healthz, /readyz and /metrics of a gateway; those of a process that is a worker as well are
    the worker's.
    """
    if settings.bot_role != "gateway" or not settings.web_port:
        yield
        return

    async def show() -> bytes:
        from adapters.metrics.cluster import GatewayVitals, render_gateway

        peers, gateway = held.peers, held.gateway
        accounts = peers.accounts()
        online = sum(account.online is not False for account in accounts)
        vitals = GatewayVitals(
            online=online,
            offline=len(accounts) - online,
            reconnects=peers.reconnects,
            published=gateway.published,
            waiting=gateway.waiting,
            lost=gateway.lost,
            refused=gateway.refused,
            is_up=gateway.is_up,
        )
        return render_gateway(vitals)

    async with WebServer(
        host=settings.web_host,
        port=settings.web_port,
        ready=held.ready,
        metrics=show,
        required="web_port" in settings.model_fields_set,
    ):
        yield
