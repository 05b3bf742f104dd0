"""The composition root: builds the object graph and owns the lifetimes. READ FIRST.

adapters/onebot  --events-->  Dispatcher -> MessageWay -> Lanes -> Turns -> Engine -> ChatModel,
                                                                                      Toolset
                 <--actions-  Transport <- Outbox <- Delivery <-' (and <- send_message, in mid-run)
adapters/storage <--entries-  Hearing, Ledger, Recorder, Outbox;  --at start-> Recoverer
adapters/metrics <-- run events, entries, events, model requests;  adapters/web shows them
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import (
    AbstractAsyncContextManager,
    AsyncExitStack,
    asynccontextmanager,
    nullcontext,
)
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol, TypeVar

from sqlalchemy import Connection

from adapters.metrics.metrics import CountedSink, Metrics
from adapters.onebot.transport import AnyTransport
from adapters.storage.store import SqlStore, open_store
from bot.cluster.line import (
    ClusterLine,
    Durable,
    Seat,
    build_line,
    hearing_of,
    neighbours_of,
    offers_of,
    others_of,
    spending_of,
    startup_alerts_of,
)
from bot.cluster.singletons import run_singletons
from bot.console.console import Link
from bot.console.console_backend import ConsoleBackend
from bot.conversation.approval.approvals import Approvers, Say
from bot.conversation.dispatcher import StartupBarrier
from bot.conversation.queue.lanes import Lanes
from bot.conversation.tasks import Work
from bot.domain.cancellation import background
from bot.domain.cluster_messages import WHOLE
from bot.domain.console_views import Doctor
from bot.domain.errors import ConfigError
from bot.domain.events import Identity
from bot.domain.language import NotifyOwners
from bot.domain.masking import Mask
from bot.domain.ports import Clock, Ids, JournalObserver
from bot.domain.trial_group import Trial
from bot.memory.history import History
from bot.memory.journal_observers import ContentLog, ObservedStore
from bot.memory.newest import Newest
from bot.memory.personas import Personas
from bot.memory.summaries import Summaries
from bot.models.meter import Meter
from bot.runtime.clock import RandomIds, SystemClock
from bot.runtime.loop import BAD_CONFIGURATION, exit_process
from bot.runtime.reloading import Reload, ReloadResult, reload_all
from bot.runtime.watchdog import Watchdog
from bot.speaking.outbox import Outbox
from bot.speaking.owner_alerts import of_stalls
from bot.web import Connections, Shown, metrics_of, open_web
from bot.wiring.discovery import Discovered
from bot.wiring.fetching import user_agent
from bot.wiring.limits import build_meter, build_spending
from bot.wiring.media_readers import build_senses
from bot.wiring.mouth import owners_tongue
from bot.wiring.personas import PersonaFiles
from bot.wiring.resources import Resources, open_resources
from bot.wiring.service import Rooms, build_rooms
from bot.wiring.startup_alerts import StartupAlerts
from bot.wiring.tools import find_tools, following
from config.secrets import secrets_of
from config.settings import Settings

T = TypeVar("T")

logger = logging.getLogger(__name__)

LAST_ANSWERS = 1.0  # seconds that sends on the wire have for their answers, once no run goes on


class Wrap(Protocol):
    """Puts something around a port."""

    def __call__(self, port: T, /) -> T: ...


def as_it_is(port: T, /) -> T:
    """No wrapping."""
    return port


@dataclass(frozen=True, slots=True)
class Service:
    """A running service. `port` is where the reverse server listens, 0 in forward mode.

    `reloads` is all that was read from files and can be read once more, by what the log calls it.
    `console_link` makes addresses that let into the console once, None where there is none.
    """

    shown: Shown
    means: Resources
    transport: AnyTransport
    journal: SqlStore
    metrics: Metrics
    port: int
    reloads: Mapping[str, Reload] = field(default_factory=dict)
    console_link: Link | None = None

    @property
    def rooms(self) -> Rooms:
        """All that is in it."""
        return self.shown.rooms

    @property
    def peers(self) -> Connections:
        """Who is connected."""
        return self.shown.peers

    @property
    def lanes(self) -> Lanes[Work]:
        """The questions that are being answered or wait for that."""
        return self.rooms.on.lanes

    @property
    def history(self) -> History:
        """The memory of all conversations."""
        return self.rooms.on.history

    @property
    def outbox(self) -> Outbox:
        """The messages to be sent."""
        return self.rooms.on.outbox

    @property
    def summaries(self) -> Summaries:
        """The summaries that are being made."""
        return self.rooms.keeping.summaries

    async def reload(self) -> ReloadResult:
        """Read the files and the journal once more; runs that go on keep what they began with."""
        told = reload_all(self.reloads)
        if await self.history.reread():
            return told.and_then(logging.INFO, "the journal is read again as it is needed")
        return told.and_then(
            logging.ERROR,
            "what was said stays in memory: the journal cannot be written at the moment",
        )

    async def wait_idle(self) -> None:
        """Return once nothing is being answered, nothing is left to be sent, and nothing is being
        summarised.
        """
        await self.lanes.wait_idle()
        await self.rooms.commands.wait_idle()
        await self.outbox.wait_idle()
        await self.summaries.wait_idle()

    async def wait_settled(self, identity: Identity) -> None:
        """Return once the message of this identity was taken and no lane has anything to do."""
        await self.rooms.asking.seen.wait(identity)
        await self.lanes.wait_idle()


def leave_to_another(error: ConfigError) -> None:
    """Another process has the journal now and settles what is open here: whatever this one still
    did would be twice.
    """
    logger.critical("this process ends at once: %s", "; ".join(map(str, error.problems)))
    exit_process(BAD_CONFIGURATION)


@asynccontextmanager
async def open_service(
    settings: Settings,
    *,
    wrap: Wrap = as_it_is,
    grace: float = 0.0,
    mask: Mask | None = None,
    ousted: Callable[[ConfigError], None] = leave_to_another,
    terminal: Say | None = None,
    trying: Trial | None = None,
    clock: Clock | None = None,
    seat: Seat | None = None,
    doctor: Doctor | None = None,
    aside: Discovered | None = None,
) -> AsyncIterator[Service]:
    """Run the service while the block runs; at its end, close everything in reverse order.

    Runs that go on at the end have `grace` seconds before they are cut off. `wrap` may put
    something around each port: tests count and break there. `mask` keeps secrets from the owner's
    lines; without one, those of the settings. `ousted` is called where another process has the
    journal now. Who reads the `terminal` is asked in the owners' place about calls that need a
    word; what is `trying` gets a console in any case, where the `doctor` is asked. One of several
    that has a `seat` shows nothing itself, and does what is done once for all only where its share
    is the first; one `aside` of another is never looked at, and has those tools alone. Raises
    ConfigError, inside a group, for a port or a journal that is taken.
    """
    clock, ids, mask = clock or SystemClock(), RandomIds(), mask or Mask(secrets_of(settings))
    async with AsyncExitStack() as stack:
        found, troubles = aside or find_tools(settings), startup_alerts_of(seat)
        offers = seat.offers if seat else offers_of(settings)
        enter = stack.enter_async_context
        stack.enter_context(troubles.logged_at_the_end())
        journal = await enter(open_journal(settings, seat, clock, troubles.tell_once, ousted))
        metrics = seat.metrics if seat else metrics_of(found.names, clock)
        kept, books, newest = wrap(journal), journal.books, Newest()
        kind, neighbours = spending_of(seat, journal, clock), neighbours_of(seat)
        spending = build_spending(settings, kept, books, clock, troubles.tell, neighbours, kind)
        news = [newest, spending] if settings.console_port or trying else [spending]
        followers = stack.enter_context(following(settings, mask, clock, aside))
        seers = *witnesses(settings, metrics), *followers, *news
        store = ObservedStore(kept, seers)
        meter = build_meter(store, spending, clock=clock, ids=ids, count=metrics.asked)
        means = await enter(means_of(settings, found, wrap, meter, clock, ids, troubles))
        line = build_line(settings, seat, offers, clock=clock, ids=ids, troubles=troubles)
        build = partial(build_rooms, settings, means, journal, others_of(seat))
        rooms = build(
            transport=wrap(line.transport),
            store=store,
            approvers=Approvers(settings.bot_owners, terminal, owners_tongue(settings)),
            observers=[metrics, *followers],
            settled=[metrics.settled, newest.settled, *(one.settled for one in followers)],
            senses=partial(build_senses, means, line.transport),
            spending=spending,
            mask=mask,
            clock=clock,
            ids=ids,
        )
        shown = Shown(rooms, spending, line.peers, journal.share, offers)
        beside = nullcontext() if seat or aside else showing(settings, metrics, shown)
        seen = ConsoleBackend(shown, journal, means, newest, clock, others_of(seat), trying, doctor)
        port = await enter(at_work(seen, line, beside, metrics, store.commit))
        link = await enter(run_singletons(settings, seen, store, mask, open_service))
        await enter(finishing(rooms, troubles, grace=grace))
        again = reloads(settings, rooms.keeping.personas, means)
        yield Service(shown, means, line.transport, journal, metrics, port, again, link)


def means_of(
    settings: Settings,
    found: Discovered,
    wrap: Wrap,
    meter: Meter,
    clock: Clock,
    ids: Ids,
    troubles: StartupAlerts,
) -> AbstractAsyncContextManager[Resources]:
    """The means of runs, to be opened."""
    return open_resources(
        settings,
        found,
        wrap=wrap,
        meter=meter,
        user_agent=user_agent(settings),
        clock=clock,
        ids=ids,
        tell=troubles.tell,
    )


@asynccontextmanager
async def at_work(
    seen: ConsoleBackend,
    line: ClusterLine,
    beside: AbstractAsyncContextManager[None],
    metrics: Metrics,
    durable: Durable,
) -> AsyncIterator[int]:
    """Everything at work, and what is `beside` it, while the block runs; the port listened on, 0 in
    forward mode.

    What an earlier process left is settled when every port is ours: where one is not, that process
    may be alive. Events that come before that wait.
    """
    rooms, spending = seen.rooms, seen.spending
    startup_barrier = StartupBarrier(rooms.stages.dispatcher)
    sink = CountedSink(startup_barrier, metrics=metrics)
    async with (
        rooms.on.outbox.open(),
        rooms.on.gestures.open(),
        rooms.keeping.open(rooms.on.lanes.wait_idle),
        rooms.commands.open(),
        rooms.on.lanes.open(rooms.stages.lane.do),
        beside,
        line.open(sink, durable, hearing_of(seen, startup_barrier.opened)) as port,
    ):
        await spending.start()
        await rooms.keeping.personas.start()
        await rooms.on.quiet_overrides.start()
        await rooms.on.pokes.start()
        await rooms.on.modes.start()
        await rooms.on.shadow.drafts.start()
        await rooms.recoverer.start()
        loops = (
            spending.run(),
            rooms.keeping.personas.run(),
            rooms.on.quiet_overrides.run(),
            rooms.on.pokes.run(),
            rooms.stages.petitions.run(),
            rooms.on.modes.run(),
            rooms.answering.drafts.run(),
            rooms.answering.publishing.run(),
            rooms.on.shadow.run(),
            rooms.on.shadow.drafts.run(),
            rooms.recoverer.run(),
            rooms.catchup.run(),
            rooms.deafness.run(),
            rooms.unconfirmed_checker.run(),
            rooms.group_probe.run(),
            rooms.stages.expiry.run(),
        )
        async with background(*loops):
            startup_barrier.open()
            yield port


@asynccontextmanager
async def showing(settings: Settings, metrics: Metrics, shown: Shown) -> AsyncIterator[None]:
    """While the block runs, others can look at how the bot is and fetch what it offers, and a loop
    that stands still is noticed.
    """
    rooms = shown.rooms
    stalled = of_stalls(rooms.owner, metrics.stalled)
    watchdog = Watchdog(clock=rooms.on.clock, stalled=stalled)
    web = open_web(settings, metrics, lambda: (shown,), offers=shown.offers)
    async with background(watchdog.run()), web:
        yield


@asynccontextmanager
async def finishing(rooms: Rooms, troubles: StartupAlerts, *, grace: float) -> AsyncIterator[None]:
    """At the end of the block, while everything is still open, come to an end: no new run, no new
    send.

    Questions that wait, and those that still come, stay in the journal as ones that nobody came to:
    the next start answers them while they are young. A run that is cut off leaves its turn open:
    the next start settles it.
    """
    async with background(troubles.pass_on(rooms.owner)):
        try:
            yield
        finally:
            await rooms.on.lanes.finish(within=grace)
            await rooms.on.outbox.finish(within=LAST_ANSWERS)


def open_journal(
    settings: Settings,
    seat: Seat | None,
    clock: Clock,
    trouble: NotifyOwners,
    ousted: Callable[[ConfigError], None],
) -> AbstractAsyncContextManager[SqlStore]:
    """The journal that the settings name, to be opened: the share of it that is this `seat`'s."""
    return open_store(
        settings.store_url.get_secret_value(),
        keep_days=settings.store_keep_days,
        keep_messages=settings.store_keep_messages,
        clock=clock,
        trouble=trouble,
        migrate=migrate,
        ousted=ousted,
        lease=seat.lease if seat else None,
        share=seat.share if seat else WHOLE,
    )


def migrate(connection: Connection) -> None:
    """Bring the database's schema up to date; Alembic is large, and an up-to-date database never
    needs it.
    """
    from adapters.storage.migrate import migrate as up

    up(connection)


def witnesses(settings: Settings, metrics: Metrics) -> list[JournalObserver]:
    """Who sees what is written down."""
    return [metrics, ContentLog()] if settings.log_content else [metrics]


def reloads(settings: Settings, personas: Personas, means: Resources) -> dict[str, Reload]:
    """For each file that is set, a function that reads it once more."""
    files = {
        "the table of games": (settings.games_file, means.games.reload),
        "the file of subagents": (settings.subagents_file, means.staff.reload),
    }
    if means.words is not None:
        files["the word list"] = settings.words_file, means.words.reload
    again = PersonaFiles(settings, means.models.named).reloads(personas)
    return again | {name: reload for name, (file, reload) in files.items() if file is not None}
