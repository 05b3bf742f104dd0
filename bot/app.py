"""The composition root: builds the object graph and owns the lifetimes. READ FIRST.

adapters/onebot  --events-->  Dispatcher -> Lanes -> Turns -> Engine -> ChatModel, Toolset
                 <--actions-  Transport <- Outbox <- Delivery <-' (and <- send_message, in the middle of a run)
adapters/storage <--entries-  Dispatcher, Turns, Recorder, Outbox;  --at start-> Recoverer
adapters/metrics <-- run events, entries, events, model requests;  adapters/web shows them
"""

from __future__ import annotations

import asyncio
import importlib.metadata
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from sqlalchemy import Connection

from adapters.fetching.client import HttpxWeb
from adapters.metrics.metrics import Metrics
from adapters.metrics.ports import CountedSink
from adapters.metrics.vitals import Vitals, VitalsCollector
from adapters.onebot.calls import Calls
from adapters.onebot.forward_ws import ForwardClient
from adapters.onebot.peers import Peers
from adapters.onebot.reverse_ws import ReverseServer
from adapters.onebot.transport import OneBotTransport
from adapters.openai.client import make_session
from adapters.storage.store import SqlStore, open_store
from bot.conversation.dispatcher import Dispatcher
from bot.conversation.gate import Gate
from bot.conversation.turn import Turns
from bot.domain.errors import ConfigError, Problem
from bot.domain.masking import Mask, for_the_log
from bot.domain.ports import Clock, EventSink, Ids, Witness
from bot.memory.history import History
from bot.memory.summaries import Summaries
from bot.memory.witnesses import ContentLog, WitnessedStore
from bot.runtime.clock import RandomIds, SystemClock
from bot.runtime.loop import BAD_CONFIGURATION, leave
from bot.runtime.reloading import Reload, Reread, reload_all
from bot.runtime.watchdog import Watchdog
from bot.speaking.outbox import Outbox
from bot.speaking.owner import Owner
from bot.wiring.discovery import report
from bot.wiring.media import open_media
from bot.wiring.models import build_models
from bot.wiring.service import Rooms, build_rooms, persona
from bot.wiring.subagents import Staff
from bot.wiring.tools import build_ports, build_toolset, find_tools, following
from config.secrets import secrets_of
from config.settings import Settings
from tools.get_game_version.games import Games

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
    """

    rooms: Rooms
    transport: OneBotTransport
    peers: Peers
    journal: SqlStore
    metrics: Metrics
    port: int
    reloads: Mapping[str, Reload] = field(default_factory=dict)

    @property
    def dispatcher(self) -> Dispatcher:
        """Who takes every event."""
        return self.rooms.dispatcher

    @property
    def history(self) -> History:
        """What was said."""
        return self.rooms.history

    @property
    def outbox(self) -> Outbox:
        """What is to be sent."""
        return self.rooms.outbox

    @property
    def summaries(self) -> Summaries:
        """What is being summarised."""
        return self.rooms.summaries

    async def reload(self) -> Reread:
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
        await self.dispatcher.lanes.wait_idle()
        await self.outbox.wait_idle()
        await self.summaries.wait_idle()


def leave_to_another(error: ConfigError) -> None:
    """Another process has the journal now and settles what is open here: whatever this one still
    did would be twice.
    """
    logger.critical("this process ends at once: %s", "; ".join(map(str, error.problems)))
    leave(BAD_CONFIGURATION)


@asynccontextmanager
async def open_service(
    settings: Settings,
    *,
    wrap: Wrap = as_it_is,
    grace: float = 0.0,
    mask: Mask | None = None,
    ousted: Callable[[ConfigError], None] = leave_to_another,
) -> AsyncIterator[Service]:
    """Run the service while the block runs; at its end, close everything in reverse order.

    Runs that go on at the end have `grace` seconds before they are cut off; nothing new is begun
    then. `wrap` may put something around each port (the model, the transport, the store): tests
    count and break there. `mask` keeps secrets from the owner's lines; without one, those of the
    settings. `ousted` is called where another process has the journal now. Raises ConfigError,
    inside a group, for what only shows when it is tried: a port that is taken, a journal that
    another process has.
    """
    clock, ids = SystemClock(), RandomIds()
    troubles: asyncio.Queue[str] = asyncio.Queue()
    async with AsyncExitStack() as stack:
        stack.callback(log_troubles, troubles)
        tell = troubles.put_nowait
        journal = await stack.enter_async_context(
            open_journal(settings, clock=clock, trouble=tell, ousted=ousted)
        )
        session = await stack.enter_async_context(make_session())
        found = find_tools(settings)
        report(found.problems)
        metrics = Metrics(tools=found.names, clock=clock)
        models = build_models(
            settings,
            session=session,
            wrap=wrap,
            count=metrics.asked,
            clock=clock,
            ids=ids,
            tell=tell,
        )
        web = HttpxWeb(
            clock=clock, user_agent=user_agent(settings), base_urls=settings.tools_mirrors
        )
        stack.push_async_callback(web.aclose)
        media = await stack.enter_async_context(
            open_media(settings, clock=clock, user_agent=user_agent(settings))
        )
        games = Games(clock=clock, file=settings.games_file)
        games.check()
        staff = Staff(
            settings,
            models=models,
            toolset=build_toolset(settings, found.tools, clock=clock),
            clock=clock,
        )
        mask = mask or Mask(secrets_of(settings))
        followers = stack.enter_context(following(settings, mask=mask, clock=clock))
        calls, peers = Calls(boot=ids.trace()), Peers()
        transport = OneBotTransport(
            peers=peers, calls=calls, pass_urls=settings.media_urls == "pass"
        )
        rooms = build_rooms(
            settings,
            model=models.main,
            transport=wrap(transport),
            store=WitnessedStore(wrap(journal), witnesses(settings, metrics)),
            ports=build_ports(
                settings,
                subagents=staff.subagents,
                media=media.media,
                web=web,
                games=games,
                clock=clock,
            ),
            toolset=staff.toolset,
            observers=[metrics, *followers],
            sight=media.sight(transport.get_image) if models.see else None,
            mask=mask,
            clock=clock,
            ids=ids,
        )
        work = at_work(
            settings, rooms, metrics=metrics, peers=peers, calls=calls, clock=clock, ids=ids
        )
        port = await stack.enter_async_context(work)
        await stack.enter_async_context(background(tell_troubles(troubles, rooms.owner)))
        await stack.enter_async_context(finishing(rooms, grace=grace))
        again = reloads(settings, rooms.turns, games, staff)
        yield Service(rooms, transport, peers, journal, metrics, port, again)


@asynccontextmanager
async def at_work(
    settings: Settings,
    rooms: Rooms,
    *,
    metrics: Metrics,
    peers: Peers,
    calls: Calls,
    clock: Clock,
    ids: Ids,
) -> AsyncIterator[int]:
    """Everything at work while the block runs; the port listened on, 0 in forward mode.

    What an earlier process left is settled when every port is ours: where one is not, that process
    may be alive. Events that come before that wait.
    """
    gate = Gate(rooms.dispatcher)
    sink = CountedSink(gate, metrics=metrics)
    async with (
        background(Watchdog(clock=clock, stalled=metrics.stalled).run()),
        rooms.outbox.open(),
        rooms.summaries.open(),
        rooms.dispatcher.lanes.open(),
        open_web(settings, metrics=metrics, dispatcher=rooms.dispatcher, peers=peers),
        open_onebot(settings, sink=sink, peers=peers, calls=calls, clock=clock, ids=ids) as port,
    ):
        await rooms.recoverer.start()
        loops = (
            rooms.recoverer.run(),
            rooms.catchup.run(),
            rooms.doubts.run(),
            rooms.dispatcher.deny_expired(),
        )
        async with background(*loops):
            gate.open()
            yield port


@asynccontextmanager
async def finishing(rooms: Rooms, *, grace: float) -> AsyncIterator[None]:
    """At the end of the block, while everything is still open, come to an end: no new run, no new
    send.
    """
    try:
        yield
    finally:
        await rooms.dispatcher.finish(within=grace)
        await rooms.outbox.finish(within=LAST_ANSWERS)


def open_journal(
    settings: Settings,
    *,
    clock: Clock,
    trouble: Callable[[str], None],
    ousted: Callable[[ConfigError], None],
) -> AbstractAsyncContextManager[SqlStore]:
    """The journal that the settings name."""
    return open_store(
        settings.store_url.get_secret_value(),
        keep_days=settings.store_keep_days,
        keep_messages=settings.store_keep_messages,
        clock=clock,
        trouble=trouble,
        migrate=migrate,
        ousted=ousted,
    )


def reloads(settings: Settings, turns: Turns, games: Games, staff: Staff) -> dict[str, Reload]:
    """What was read from files that are set, and reads them once more."""

    def reread_persona() -> tuple[Problem, ...]:
        try:
            turns.become(persona(settings))
        except ConfigError as error:
            return error.problems
        return ()

    files = {
        "the persona": (settings.bot_persona, reread_persona),
        "the table of games": (settings.games_file, games.reload),
        "the file of subagents": (settings.subagents_file, staff.reload),
    }
    return {name: reload for name, (file, reload) in files.items() if file is not None}


def migrate(connection: Connection) -> None:
    """Bring the database's schema up to date; Alembic is large, and an up-to-date database never
    needs it.
    """
    from adapters.storage.migrate import migrate as up

    up(connection)


def witnesses(settings: Settings, metrics: Metrics) -> list[Witness]:
    """Who sees what is written down."""
    return [metrics, ContentLog()] if settings.log_content else [metrics]


def user_agent(settings: Settings) -> str:
    """Who asks, and how to reach whoever runs it."""
    return f"FrostAgent/{version()}" + (
        f" (+{settings.tools_contact})" if settings.tools_contact else ""
    )


@asynccontextmanager
async def background(*loops: Coroutine[None, None, None]) -> AsyncIterator[None]:
    """Work that lasts as long as the block, unless it ends before."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(loop) for loop in loops]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()


async def tell_troubles(troubles: asyncio.Queue[str], owner: Owner) -> None:
    """Pass what the store and the models say on to the owner; lines are of one kind up to their
    bracket.
    """
    while True:
        text = await troubles.get()
        owner.tell(text.partition(" (")[0], text)


def log_troubles(troubles: asyncio.Queue[str]) -> None:
    """Tell the log what was said when nobody was there any more to pass it on."""
    while not troubles.empty():
        logger.error(for_the_log(troubles.get_nowait()))


@asynccontextmanager
async def open_onebot(
    settings: Settings, *, sink: EventSink, peers: Peers, calls: Calls, clock: Clock, ids: Ids
) -> AsyncIterator[int]:
    """Listen for OneBot servers or dial one; the port listened on, 0 in forward mode."""
    tokens = settings.access_tokens
    match settings.onebot_mode:
        case "reverse":
            async with ReverseServer(
                host=settings.onebot_host,
                port=settings.onebot_port,
                token=tokens.common,
                accounts=tokens.accounts,
                sink=sink,
                peers=peers,
                calls=calls,
                clock=clock,
            ) as server:
                yield server.port
        case "forward":
            account, token = tokens.only
            client = ForwardClient(
                url=settings.onebot_url,
                token=token,
                account=account,
                sink=sink,
                peers=peers,
                calls=calls,
                clock=clock,
                ids=ids,
            )
            async with background(client.run()):
                yield 0


@asynccontextmanager
async def open_web(
    settings: Settings, *, metrics: Metrics, dispatcher: Dispatcher, peers: Peers
) -> AsyncIterator[None]:
    """Show whether the bot lives, can answer, and what it counts; not with WEB_PORT=0."""

    def look() -> Vitals:
        online = [account.online is not False for account in peers.accounts()]
        lanes = dispatcher.lanes
        return Vitals(
            lanes=lanes.active,
            queued=max(0, lanes.waiting - lanes.active),
            online=sum(online),
            offline=len(online) - sum(online),
            duplicates=dispatcher.duplicates,
            overflow=dispatcher.overflow.count,
            reconnects=peers.reconnects,
        )

    metrics.registry.register(VitalsCollector(look))
    match settings.web_port:
        case 0:
            yield
        case port:
            from adapters.web.readiness import Attendance
            from adapters.web.server import WebServer

            # A default that is taken is no reason to be silent in QQ; what somebody asked for must
            # be had.
            asked_for = "web_port" in settings.model_fields_set
            ready = Attendance(
                peers.accounts, stopping=lambda: dispatcher.stopping, refused=lambda: peers.refused
            )
            async with WebServer(
                host=settings.web_host,
                port=port,
                ready=ready,
                metrics=metrics.render,
                required=asked_for,
            ):
                yield


def version() -> str:
    """The installed version, or "dev" where the project runs from a bare checkout."""
    try:
        return importlib.metadata.version("frostagent")
    except importlib.metadata.PackageNotFoundError:
        return "dev"
