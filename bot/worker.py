"""The composition root of a worker (BOT_ROLE=worker): a bot as in bot/app.py for each of its
partitions.

adapters/storage/leases --workers, leases--> PartitionManager --opens, closes--> bot/app.py
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING

from adapters.broker.link import BrokerLink
from adapters.broker.notes import NoteExchange
from adapters.broker.partitions import ClusterPartition
from adapters.broker.requests import RequestExchange
from adapters.metrics.work import Work
from adapters.storage.leases import Lease, Roster, holder_of_process, name_of
from bot.app import Service, open_service
from bot.cluster.membership import Membership
from bot.cluster.partition_manager import PartitionManager
from bot.configured_tools import find_tools
from bot.core.console_views import Doctor
from bot.outbox.owner_alerts import stall_alerts
from bot.runtime.watchdog import Watchdog
from bot.web import STANDING_BY, build_file_offers, build_metrics, open_web
from config.settings import Settings
from frostagent.cancellation import background
from frostagent.clock import RandomIds, SystemClock
from frostagent.text.masking import Mask

if TYPE_CHECKING:
    from adapters.metrics.cluster import WorkCollector


@asynccontextmanager
async def open_worker(
    settings: Settings,
    *,
    grace: float = 0.0,
    mask: Mask | None = None,
    doctor: Doctor | None = None,
) -> AsyncIterator[PartitionManager[Service]]:
    """Run this process's share of the partitions while the block runs; at the end, runs have
    `grace` seconds. Raises ConfigError, inside a group.
    """
    clock, ids, holder = SystemClock(), RandomIds(), holder_of_process()
    metrics, work = (
        build_metrics(find_tools(settings).names, clock),
        Work(settings.broker_partitions),
    )
    offers = build_file_offers(settings)

    def open_partition(scope: ClusterPartition) -> AbstractAsyncContextManager[Service]:
        lease = Lease(name_of(scope.partition), holder=holder)
        name = ids.trace()
        member = Membership(
            scope, lease, metrics, NoteExchange(name), RequestExchange(name, scope), work, offers
        )
        return open_service(settings, grace=grace, mask=mask, member=member, doctor=doctor)

    def is_idle(service: Service) -> bool:
        return not (service.app.lanes.active or service.app.lanes.waiting)

    def stalled(seconds: float) -> None:
        told = [stall_alerts(one.app.owner, metrics.stalled) for one in manager.services[:1]]
        for tell in told or [metrics.stalled]:
            tell(seconds)

    def collect_work() -> tuple[WorkCollector, ...]:
        from adapters.metrics.cluster import WorkCollector as Collector  # loads Prometheus' library

        return (Collector(work),)

    sight = BrokerLink(settings.broker_url.get_secret_value(), clock=clock, trouble=lambda _: None)
    with ThreadPoolExecutor(1, "roster") as thread:
        roster = Roster(settings.store_url.get_secret_value(), holder)
        manager = PartitionManager(
            open_partition,
            roster,
            is_idle=is_idle,
            is_connected=lambda: sight.is_up,
            work=work,
            thread=thread,
            clock=clock,
        )
        watchdog = Watchdog(clock=clock, stalled=stalled)
        shown = open_web(
            settings,
            metrics,
            lambda: [service.app for service in manager.services],
            cut_off=lambda: "" if manager.services else STANDING_BY,
            collectors=collect_work,
            offers=offers,
        )
        async with background(watchdog.run(), sight.hold()), shown, background(manager.run()):
            yield manager
