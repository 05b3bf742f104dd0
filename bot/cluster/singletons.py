"""What runs once for all bots of a cluster: the owners' daily digest and the console."""

from __future__ import annotations

import platform
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from bot.build import App
from bot.commands.alarms import AlarmMonitor
from bot.commands.digest import DailyDigest
from bot.console.console import Link, open_console
from bot.core.console_views import Doctor
from bot.core.trial_group import Trial
from bot.runtime.background import Background
from config.settings import Settings
from frostagent.text.masking import Mask

if TYPE_CHECKING:
    from bot.trial.simulated_trial import OpenService


def list_daily_tasks(settings: Settings, app: App) -> tuple[Background, ...]:
    """The loops that send owners the daily digest, and alarms about a disk that fills up, a model
    that became dearer, a stuck lane, people near their limits and new groups. A bot that does not
    have the first partition sends only the alarms about its own.
    """
    books, is_first = app.journal.books, app.journal.share.is_first
    alarms = AlarmMonitor(
        stands=app.status.here,
        busy=app.lanes.in_progress,
        gather=(app.spending.alerts.take_people, app.decisions.groups.news),
        books=books if is_first else None,
        tell=app.owner.tell,
        clock=app.clock,
        tongue=app.owner.tongue,
        host=platform.node() if settings.has_broker else "",
    )
    if not is_first:
        return (Background("alarms", alarms.run, needs_account=True),)
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
    return (
        Background("daily digest", daily.run, needs_account=True),
        Background("alarms", alarms.run, needs_account=True),
    )


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
    """Run the console while the block runs; `open_service` opens the services of trials. Yields
    what makes links to the console; None if there is none here, as on every bot that does not have
    the first partition.
    """
    if not app.journal.share.is_first:
        yield None
        return
    async with open_console(
        settings, app, mask=mask, open_service=open_service, trying=trying, doctor=doctor
    ) as link:
        yield link
