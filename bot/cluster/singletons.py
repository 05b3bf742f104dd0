"""Tasks that run once for all bots of a cluster: the owners' daily line and the console."""

from __future__ import annotations

import platform
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING

from bot.build import App
from bot.commands.alarms import AlarmMonitor
from bot.commands.digest import DailyDigest
from bot.console.console import Link, open_console
from bot.domain.cancellation import background
from bot.domain.console_views import Doctor
from bot.domain.masking import Mask
from bot.domain.trial_group import Trial
from config.settings import Settings

if TYPE_CHECKING:
    from bot.trial.simulated_trial import OpenService


def run_daily_tasks(settings: Settings, app: App) -> AbstractAsyncContextManager[None]:
    """While it is open, owners get a daily digest, and alarms: a disk that fills up, a model that
    became dearer, a stuck lane, people near their limits, new groups. If another share of the
    journal is the first, only the alarms of this share.
    """
    books, is_first = app.journal.books, app.journal.share.is_first
    alarms = AlarmMonitor(
        stands=app.status.here,
        busy=app.lanes.in_progress,
        gather=(app.spending.marks.people, app.group_approval.news),
        books=books if is_first else None,
        tell=app.owner.tell,
        clock=app.clock,
        tongue=app.owner.tongue,
        host=platform.node() if settings.has_broker else "",
    )
    if not is_first:
        return background(alarms.run())
    daily = DailyDigest(
        at=settings.bot_digest,
        tongue=app.owner.tongue,
        books=books,
        stands=app.status.everywhere,
        choices=books,
        store=app.store,
        owner=app.owner,
        clock=app.clock,
    )
    return background(daily.run(), alarms.run())


@asynccontextmanager
async def run_singletons(
    settings: Settings,
    app: App,
    *,
    mask: Mask,
    open_service: OpenService,
    trying: Trial | None = None,
    doctor: Doctor | None = None,
) -> AsyncIterator[Link | None]:
    """Run the console and the daily tasks while the block runs; `open_service` opens the
    services of trials.
    Yields what makes links to the console; None if another share of the journal is the first, which
    has the console.
    """
    async with run_daily_tasks(settings, app):
        if not app.journal.share.is_first:
            yield None
            return
        async with open_console(
            settings, app, mask=mask, open_service=open_service, trying=trying, doctor=doctor
        ) as link:
            yield link
