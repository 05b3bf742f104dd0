"""The connection of a bot or gateway with QQ: sockets of its own, or those of gateways behind a
broker.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Protocol

from adapters.onebot.sockets import Sockets
from adapters.onebot.transport import AnyTransport
from adapters.web.file_offers import FileOffers
from bot.core.cluster_queries import ClusterHandlers
from bot.core.ports import EventSink
from bot.outbox.owner_alerts import StartupAlerts
from config.settings import Settings
from frostagent.types.ports import Clock, Ids

if TYPE_CHECKING:
    from bot.build import Connections
    from bot.cluster.broker import Seat


class ClusterLine(Protocol):
    """The connected accounts, and what is sent to them and comes from them."""

    @property
    def peers(self) -> Connections: ...

    @property
    def transport(self) -> AnyTransport: ...

    def open(
        self,
        sink: EventSink,
        durable: Callable[[], Awaitable[bool]],
        build_handlers: Callable[[], ClusterHandlers],
        /,
    ) -> AbstractAsyncContextManager[int]:
        """Take events while the block runs. Yields the port that is listened on, or 0.

        `durable` waits until the journal has everything put into it; False if it cannot promise
        that. `build_handlers` is called if other bots of a cluster can send messages and queries.
        """
        ...


def build_line(
    settings: Settings,
    seat: Seat | None,
    offers: FileOffers | None,
    *,
    clock: Clock,
    ids: Ids,
    alerts: StartupAlerts,
) -> ClusterLine:
    """A line that is not open yet: over a broker if the bot has a `seat` in a cluster."""
    if seat is None:
        return build_sockets(settings, offers, clock=clock, ids=ids)
    from bot.cluster.broker import build_broker_line  # needs the library of an extra

    return build_broker_line(settings, seat, clock=clock, ids=ids, alerts=alerts)


def build_sockets(
    settings: Settings, offers: FileOffers | None = None, *, clock: Clock, ids: Ids
) -> Sockets:
    """Sockets that are not open yet. Media too large for a frame are put on `offers`, if given."""
    return Sockets(
        host=settings.onebot_host,
        port=settings.onebot_port,
        url=settings.onebot_url if settings.onebot_mode == "forward" else "",
        token=settings.access_tokens.common,
        account_tokens=settings.access_tokens.accounts,
        pass_urls=settings.media_urls == "pass",
        offers=offers,
        clock=clock,
        ids=ids,
    )
