"""Tasks that run once for all bots of a cluster: the owners' daily line and the console."""

from __future__ import annotations

import platform
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

from adapters.storage.store import SqlStore
from bot.commands.alarms import AlarmMonitor
from bot.commands.digest import DailyDigest
from bot.console.console import Link, open_console
from bot.console.console_backend import ConsoleBackend
from bot.domain.cancellation import background
from bot.domain.cluster_queries import NO_OTHERS, ClusterClient
from bot.domain.masking import Mask
from bot.domain.ports import Clock, Store
from bot.memory.spending import Spending
from bot.wiring.mouth import owners_tongue
from bot.wiring.service import Rooms
from bot.wiring.status import current_status, data_folder
from config.settings import Settings

if TYPE_CHECKING:
    from bot.trial.simulated_trial import OpenService


def run_daily_tasks(
    settings: Settings,
    rooms: Rooms,
    spending: Spending,
    journal: SqlStore,
    store: Store,
    others: ClusterClient,
    clock: Clock,
) -> AbstractAsyncContextManager[None]:
    """While it is open, owners get a daily digest, and alarms: a disk that fills up, a model that
    became dearer, a stuck lane, people near their limits, new groups. If another share of the
    journal is the first, only the alarms of this share.
    """
    on, answering, petitions = rooms.on, rooms.answering, rooms.stages.petitions
    here = data_folder(settings), on, answering, petitions
    tell = rooms.owner.tell
    alarms = AlarmMonitor(
        stands=partial(current_status, NO_OTHERS, *here),
        busy=on.lanes.in_progress,
        gather=(spending.marks.people, answering.groups.news),
        books=journal.books if journal.share.is_first else None,
        tell=tell,
        clock=clock,
        tongue=rooms.owner.tongue,
        host=platform.node() if settings.has_broker else "",
    )
    daily = DailyDigest(
        at=settings.bot_digest,
        tongue=owners_tongue(settings),
        books=journal.books,
        stands=partial(current_status, others, *here),
        choices=journal.books,
        store=store,
        owner=rooms.owner,
        clock=clock,
    )
    if not journal.share.is_first:
        return background(alarms.run())
    return background(daily.run(), alarms.run())


@asynccontextmanager
async def run_singletons(
    settings: Settings, seen: ConsoleBackend, store: Store, mask: Mask, opening: OpenService
) -> AsyncIterator[Link | None]:
    """Run the console and the daily tasks while the block runs; `opening` opens trial services.
    Yields what makes links to the console; None if another share of the journal is the first, which
    has the console.
    """
    async with run_daily_tasks(
        settings, seen.rooms, seen.spending, seen.journal, store, seen.others, seen.clock
    ):
        if not seen.journal.share.is_first:
            yield None
            return
        async with open_console(settings, seen, mask=mask, opening=opening) as link:
            yield link
