"""The line to QQ, whoever holds its sockets."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias

from adapters.metrics.metrics import Metrics
from adapters.onebot.sockets import Sockets
from adapters.onebot.transport import AnyTransport
from adapters.web.file_offers import FileOffers
from bot.build import App, Connections
from bot.domain.cluster_messages import ALONE, ClusterPartition, ClusterPeers
from bot.domain.cluster_queries import NO_OTHERS, ClusterClient, ClusterHandlers
from bot.domain.ports import Clock, EventSink, Ids
from bot.speaking.startup_alerts import StartupAlerts
from config.settings import Settings

if TYPE_CHECKING:  # of clusters alone
    from adapters.broker.notes import NoteExchange
    from adapters.broker.requests import RequestExchange
    from adapters.metrics.work import Work
    from adapters.storage.leases import Lease

Durable: TypeAlias = Callable[[], Awaitable[bool]]
"""Waits until all that was put into the journal is durable; False where nobody can promise it."""

Hearing: TypeAlias = Callable[[], ClusterHandlers]
"""Makes the ears for the others of a cluster; one alone never does."""


@dataclass(frozen=True, slots=True)
class Seat:
    """The place of a bot that is one of several in a cluster: its share of the accounts, the lease
    it has on that, what counts for its whole process, its lines to the others (what it tells them,
    and what it asks), how its process works, and where that offers large files, if it does.
    """

    share: ClusterPartition
    lease: Lease
    metrics: Metrics
    notices: NoteExchange
    asks: RequestExchange
    work: Work
    offers: FileOffers | None = None


class ClusterLine(Protocol):
    """The connections there are, and what goes over them."""

    @property
    def peers(self) -> Connections: ...

    @property
    def transport(self) -> AnyTransport: ...

    def open(
        self, sink: EventSink, durable: Durable, ears: Hearing, /
    ) -> AbstractAsyncContextManager[int]:
        """Take events, and what other bots tell and ask, while the block runs; the port that is
        listened on, 0 where none is.
        """
        ...


def build_line(
    settings: Settings,
    seat: Seat | None,
    offers: FileOffers | None,
    *,
    clock: Clock,
    ids: Ids,
    troubles: StartupAlerts,
) -> ClusterLine:
    """A line that is not open yet: sockets of our own, or those of gateways behind a broker.

    Gateways know who has a share of the accounts now by the lease of its `seat`.
    """
    if seat is None:
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
    from bot.cluster.broker import build_broker_line  # an extra's library: not for everybody

    return build_broker_line(settings, seat, clock=clock, ids=ids, troubles=troubles)


def startup_alerts_of(seat: Seat | None) -> StartupAlerts:
    """Who keeps what only the owner can mend, until he can be told."""
    return StartupAlerts(speaks=seat.share.is_first) if seat else StartupAlerts()


def offers_of(settings: Settings) -> FileOffers | None:
    """Where a process offers what is too large for a frame; None where it does not, or where
    nothing listens.
    """
    return FileOffers(settings.media_url) if settings.media_url and settings.web_port else None


def neighbours_of(seat: Seat | None) -> ClusterPeers:
    """The other bots of the cluster, if there can be any."""
    return seat.notices if seat and seat.share.partitions > 1 else ALONE


def hearing_of(app: App, at_work: Callable[[], Awaitable[None]]) -> Hearing:
    """How a bot hears the others, which it answers once it is `at_work`."""

    def ears() -> ClusterHandlers:
        from bot.cluster.cluster_events import build_handlers  # of clusters alone

        return build_handlers(app, at_work)

    return ears


def others_of(seat: Seat | None) -> ClusterClient:
    """The same, to be asked."""
    return seat.asks if seat else NO_OTHERS
