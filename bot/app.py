"""The lifetimes of a bot: opens what `bot/build.py` builds, and closes it. Read build.py first.

adapters/onebot  --events-->  Dispatcher -> MessageWay -> Lanes -> Turns -> Engine -> ChatModel,
                                                                                      Toolset
                 <--actions-  Transport <- Outbox <- Delivery <-' (and <- send_message, in mid-run)
adapters/storage <--entries-  MessageLog, TurnJournal, Recorder, Outbox;  --at start-> Recoverer
adapters/metrics <-- run events, entries, events, model requests;  adapters/web shows them
"""

from __future__ import annotations

import logging
import platform
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import Connection

from adapters.metrics.metrics import CountedSink
from adapters.onebot.sockets import Sockets
from adapters.storage.store import open_store
from adapters.traces.run_log import RunLog
from adapters.traces.spans import TurnSpans
from bot.approvals.decision import Say
from bot.budget.trial_account import TrialAccount
from bot.build import App, build_app
from bot.chat.dispatcher import StartupBarrier
from bot.chat_models import Wrap
from bot.commands.alarms import AlarmMonitor
from bot.commands.digest import DailyDigest
from bot.configured_tools import find_tools
from bot.console.console import Link, open_console
from bot.core.console_views import Doctor
from bot.core.engine_words import ENGINE_WORDS
from bot.core.events import Identity
from bot.core.other_bots import ALONE, EVERY_ACCOUNT
from bot.core.ports import TurnFollower
from bot.core.trial_group import Trial
from bot.outbox.owner_alerts import StartupAlerts, stall_alerts
from bot.runtime.background import Background, StartupLoader, run_background
from bot.runtime.loop import BAD_CONFIGURATION, exit_process
from bot.runtime.reloading import JOURNAL_KEPT, JOURNAL_READ, ReloadResult, reload_all
from bot.runtime.tool_discovery import Discovered, report
from bot.runtime.watchdog import Watchdog
from bot.sockets import build_sockets
from bot.web import build_file_offers, build_metrics, open_web
from config.secrets import secrets_of
from config.settings import Settings
from frostagent.cancellation import background
from frostagent.clock import RandomIds, SystemClock
from frostagent.models.openai.client import make_session
from frostagent.text.masking import Mask
from frostagent.types.errors import ConfigError
from frostagent.types.ports import Clock
from frostagent.words import use_words

if TYPE_CHECKING:  # clusters only
    from bot.cluster.membership import BrokerLine, Membership

logger = logging.getLogger(__name__)

LAST_ANSWERS = 1.0  # seconds after the last run for sends on the wire to be confirmed


@dataclass(frozen=True, slots=True)
class Service:
    """A running bot. `port` is where the reverse server listens, 0 in forward mode. `console_link`
    makes addresses that log in to the console once; None if there is no console.
    """

    app: App
    port: int
    console_link: Link | None = None

    async def reload(self) -> ReloadResult:
        """Read the files and the journal again; runs under way keep what they began with."""
        told = reload_all(self.app.reloads)
        if await self.app.history.reread():
            return told.and_then(logging.INFO, JOURNAL_READ.fill())
        return told.and_then(logging.ERROR, JOURNAL_KEPT.fill())

    async def wait_idle(self) -> None:
        """Return once nothing is being answered, sent or summarized."""
        await self.app.scheduler.wait_idle()
        await self.app.lanes.wait_idle()
        await self.app.commands.wait_idle()
        await self.app.errands.wait_idle()
        await self.app.outbox.wait_idle()
        await self.app.summaries.wait_idle()

    async def wait_settled(self, identity: Identity) -> None:
        """Return once this message was received and all lanes are idle."""
        await self.app.seen.wait(identity)
        await self.app.lanes.wait_idle()


def leave_to_another(error: ConfigError) -> None:
    """Another process has the journal now and settles its open work. Anything this process still
    did would be done twice.
    """
    logger.critical("this process ends at once: %s", "; ".join(map(str, error.problems)))
    exit_process(BAD_CONFIGURATION)


@asynccontextmanager
async def open_service(
    settings: Settings,
    *,
    wrap: Wrap | None = None,
    account: TrialAccount | None = None,
    grace: float = 0.0,
    mask: Mask | None = None,
    ousted: Callable[[ConfigError], None] = leave_to_another,
    terminal: Say | None = None,
    trying: Trial | None = None,
    clock: Clock | None = None,
    member: Membership | None = None,
    doctor: Doctor | None = None,
    aside: Discovered | None = None,
) -> AsyncIterator[Service]:
    """Run the service while the block runs; at its end, close everything in reverse order.

    - `grace`: seconds that runs under way have at the end before they are cut off.
    - `wrap` may wrap each port: tests count and inject faults there.
    - `mask` hides secrets in messages to owners; by default those of the settings.
    - `ousted` is called if another process takes over the journal.
    - `terminal` is asked instead of the owners about calls that need an approval.
    - `trying` is the trial that this bot belongs to; it always has a console.
    - `doctor` serves the console's checks.
    - `member` is set in a cluster: the bot then serves no pages of health and metrics, and only
      the first one runs the console and the daily digest.
    - `aside` is set for a bot beside another one: these are its only tools, and it is never
      followed or shown. If it asks the other one's model, that one's `account` pays.

    Raises ConfigError, inside a group, for a port or a journal that is taken.
    """
    use_words(ENGINE_WORDS)
    clock, ids, mask = clock or SystemClock(), RandomIds(), mask or Mask(secrets_of(settings))
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        found = find_tools(settings) if aside is None else aside
        alerts = StartupAlerts(speaks=member is None or member.scope.is_first)
        stack.enter_context(alerts.logged_at_the_end())
        journal = await enter(
            open_store(
                settings.store_url.get_secret_value(),
                keep_days=settings.store_keep_days,
                keep_messages=settings.store_keep_messages,
                clock=clock,
                trouble=alerts.tell_once,
                migrate=migrate,
                ousted=ousted,
                lease=member.lease if member else None,
                scope=member.scope if member else EVERY_ACCOUNT,
            )
        )
        followers: list[TurnFollower] = []
        if aside is None:  # the turns of a trial are not followed
            followers.append(TurnSpans(clock=clock))  # does nothing without an SDK
            if settings.log_runs is not None:
                run_log = RunLog(
                    settings.log_runs, clock=clock, mask=mask, content=settings.log_content
                )
                stack.enter_context(run_log.writing())
                followers.append(run_log)
        report(found.problems)
        offers = member.offers if member else build_file_offers(settings)
        session = await enter(make_session())
        line: Sockets | BrokerLine
        if member is None:
            line = build_sockets(settings, offers, clock=clock, ids=ids)
        else:
            line = member.build_line(settings, clock=clock, ids=ids, alerts=alerts)
        app = build_app(
            settings,
            found=found,
            wrap=wrap,
            account=account,
            journal=journal,
            session=session,
            transport=line.transport,
            peers=line.peers,
            announcer=member.announcer if member else ALONE,
            others=member.build_others() if member else ALONE,
            offers=offers,
            metrics=member.metrics if member else build_metrics(found.names, clock),
            followers=followers,
            is_watched=bool(settings.console_port) or trying is not None,
            terminal=terminal,
            alerts=alerts,
            mask=mask,
            clock=clock,
            ids=ids,
        )
        for client in app.web_clients:
            stack.push_async_callback(client.aclose)
        stack.push_async_callback(app.decoder.aclose)
        stack.push_async_callback(app.reader.aclose)
        is_shown = member is None and aside is None
        port = await enter(running(settings, app, line, alerts, is_shown=is_shown))
        feed = await enter(member.open_feed(app)) if member else app.newest
        link = await enter(
            open_console(
                settings,
                app,
                mask=mask,
                feed=feed,
                open_service=open_service,
                trying=trying,
                doctor=doctor,
            )
        )
        try:
            yield Service(app, port, link)
        finally:
            # Everything is still open: start no run and no send. Waiting and newly arriving
            # questions stay unanswered in the journal, and the next start answers them while they
            # are recent. A run that is cut off leaves its turn open; the next start settles it.
            await app.lanes.finish(within=grace)
            await app.outbox.finish(within=LAST_ANSWERS)


@asynccontextmanager
async def running(
    settings: Settings,
    app: App,
    line: Sockets | BrokerLine,
    alerts: StartupAlerts,
    *,
    is_shown: bool,
) -> AsyncIterator[int]:
    """Run all loops while the block runs and, if `is_shown`, the pages of health and metrics.
    Yields the port listened on, 0 in forward mode.

    The work of an earlier process is settled once all ports are bound: if one is taken, that
    process may be alive. Earlier events wait.
    """
    startup_barrier = StartupBarrier(app.dispatcher)
    sink = CountedSink(startup_barrier, metrics=app.metrics)
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        await enter(app.outbox.open())
        await enter(app.gestures.open())
        await enter(app.summaries.open())
        if app.extraction is not None:
            await enter(app.extraction.open(app.lanes.wait_idle))
        await enter(app.errands.open())
        await enter(app.commands.open())
        await enter(app.lanes.open(app.lane_way.do))
        if is_shown:
            stalled = stall_alerts(app.owner, app.metrics.stalled)
            await enter(background(Watchdog(clock=app.clock, stalled=stalled).run()))
            await enter(open_web(settings, app.metrics, lambda: (app,), offers=app.offers))

        if isinstance(line, Sockets):
            port = await enter(line.open(sink))
        else:
            port = await enter(line.open_for(app, sink, startup_barrier.opened))
        loader = StartupLoader(
            (
                app.spending.load,
                app.settings_store.load,
                app.modes.load,
                app.shadow.drafts.start,
                app.recoverer.load,
            ),
            clock=app.clock,
        )
        await loader.start()
        loops = list_background(settings, app, loader, alerts)
        await enter(run_background(loop for loop in loops if not loop.needs_account))
        startup_barrier.open()
        await enter(run_background(loop for loop in loops if loop.needs_account))
        yield port


def list_background(
    settings: Settings, app: App, loader: StartupLoader, alerts: StartupAlerts
) -> tuple[Background, ...]:
    """All loops of the bot beside its turns and connections."""
    return (
        Background("what the start could not load", loader.run),
        Background("decisions of owners", app.decisions.run),
        Background("shadow mode", app.shadow.run),
        Background("media of drafts", app.shadow.drafts.run),
        Background("catching up", app.catchup.run),
        Background("deafness watch", app.deafness.run),
        Background("unconfirmed sends", app.unconfirmed_checker.run),
        Background("group probe", app.group_probe.run),
        Background("expiry of approvals", app.active_work.expire_approvals),
        Background("MCP servers", app.servers.run),
        Background("jobs", app.scheduler.run),
        Background("daily recaps", app.daily_recaps.run),
        *list_daily_tasks(settings, app),
        Background("startup alerts", lambda: alerts.pass_on(app.owner), needs_account=True),
    )


def list_daily_tasks(settings: Settings, app: App) -> tuple[Background, ...]:
    """The loops that send owners the daily digest and alarms: a disk that fills up, a more
    expensive model, a stuck lane, people near their limits, new groups. In a cluster, bots other
    than the first only send alarms about their own accounts.
    """
    books, is_first = app.journal.books, app.journal.scope.is_first
    alarms = AlarmMonitor(
        stands=app.status.here,
        busy=app.lanes.in_progress,
        gather=(app.spending.alerts.take_people, app.decisions.groups.news),
        books=books if is_first else None,
        tell=app.owner.tell,
        clock=app.clock,
        language=app.owner.language,
        host=platform.node() if settings.has_broker else "",
    )
    if not is_first:
        return (Background("alarms", alarms.run, needs_account=True),)
    daily = DailyDigest(
        at=settings.bot_digest,
        language=app.owner.language,
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


def migrate(connection: Connection) -> None:
    """Update the database's schema. Alembic is large, and an up-to-date database never needs it."""
    from adapters.storage.migrations import migrate as up

    up(connection)
