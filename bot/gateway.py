"""The composition root of a gateway, which holds sockets and nothing else (BOT_ROLE=gateway).

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
from adapters.broker.link import BrokerLink
from adapters.broker.payloads import AccountPresence, CallEnd, GatewayCall, Presence
from adapters.onebot.accounts import PeerRegistry
from adapters.onebot.sockets import Sockets
from adapters.web.readiness import Attendance
from adapters.web.server import WebServer
from bot.core.errors import ActionRefused, ActionUnanswered, NotConnected
from bot.core.language import Bilingual, Language, NotifyOwners, text_in
from bot.sockets import build_sockets
from config.settings import Settings
from frostagent.cancellation import background
from frostagent.clock import RandomIds, SystemClock
from frostagent.text.masking import text_for_log
from frostagent.types.ports import Clock, Ids

LAST_EVENTS: Final = 5.0  # seconds at the end for events that the broker has not confirmed

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RunningGateway:
    """`peers` are its accounts; `gateway` publishes their events. `port` is the one it listens on,
    0 in forward mode.
    """

    port: int
    peers: PeerRegistry
    gateway: Gateway
    ready: Attendance


@asynccontextmanager
async def open_gateway(settings: Settings) -> AsyncIterator[RunningGateway]:
    """Hold sockets while the block runs.

    At the end the sockets close first; then their last events are published, for at most 5 s.
    Raises ConfigError, inside a group, for a port that is taken and for a broker of another
    cluster.
    """
    clock, ids = SystemClock(), RandomIds()
    sockets = build_sockets(settings, clock=clock, ids=ids)
    gateway = build_gateway(settings, sockets, clock=clock, ids=ids, trouble=_log_trouble)
    async with background(gateway.run()):
        try:
            async with sockets.open(gateway) as port:
                held = RunningGateway(
                    port, sockets.peers, gateway, _attendance(sockets.peers, gateway)
                )
                async with _open_web(settings, held):
                    yield held
        finally:
            await _publish_waiting(gateway)


def build_gateway(
    settings: Settings, sockets: Sockets, *, clock: Clock, ids: Ids, trouble: NotifyOwners
) -> Gateway:
    """Connect the sockets with the broker. `trouble` is called if the broker is away."""

    async def make_call(call: GatewayCall) -> CallEnd:
        try:
            peer = sockets.peers.caller(call.account)
            reply = await sockets.calls.make(peer, call.action, call.params, beside=call.beside)
        except NotConnected as error:
            return CallEnd("not_connected", wording=str(error))
        except ActionRefused as error:
            return CallEnd("refused", retcode=error.retcode, wording=error.wording)
        except ActionUnanswered as error:
            return CallEnd("unanswered", wording=str(error))
        return CallEnd("answered", reply.ok, reply.retcode, reply.data, reply.wording)

    def read_presence() -> Presence:
        here = tuple(
            AccountPresence(one.self_id, one.online, one.server) for one in sockets.peers.accounts()
        )
        return Presence("", here, sockets.peers.refused, sockets.peers.reconnects)

    return Gateway(
        f"frost.gateway.{ids.trace()}",
        link=BrokerLink(settings.broker_url.get_secret_value(), clock=clock, trouble=trouble),
        partitions=settings.broker_partitions,
        calls=make_call,
        accounts=read_presence,
        clock=clock,
    )


def _log_trouble(line: Bilingual) -> None:
    logger.warning(text_for_log(text_in(Language.ENGLISH, line)))


async def _publish_waiting(gateway: Gateway) -> None:
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
async def _open_web(settings: Settings, held: RunningGateway) -> AsyncIterator[None]:
    """Serve /healthz, /readyz and /metrics, unless the process is also a worker, which does."""
    if settings.bot_role != "gateway" or not settings.web_port:
        yield
        return

    async def render_metrics() -> bytes:
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
        metrics=render_metrics,
        required="web_port" in settings.model_fields_set,
    ):
        yield
