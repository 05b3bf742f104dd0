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
from adapters.metrics.vitals import Vitals
from adapters.onebot.calls import Calls
from adapters.onebot.forward_ws import ForwardClient
from adapters.onebot.peers import Peers
from adapters.onebot.reverse_ws import ReverseServer
from adapters.onebot.transport import OneBotTransport
from adapters.openai.client import make_session
from adapters.storage.store import open_store
from bot.assembly import build_models, build_sight
from bot.clock import RandomIds, SystemClock
from bot.discovery import report
from bot.dispatcher import Dispatcher
from bot.domain.errors import ConfigError, Problem
from bot.domain.masking import Mask, for_the_log
from bot.domain.ports import Clock, EventSink, Ids, Store, Witness
from bot.history import History
from bot.outbox import Outbox
from bot.owner import Owner
from bot.reloading import Reload, reload_all
from bot.rooms import Rooms, build_rooms, persona
from bot.staffing import Staff
from bot.summaries import Summaries
from bot.tooling import build_ports, build_toolset, find_tools, following
from bot.turn import Turns
from bot.witnesses import ContentLog, WitnessedStore
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

    dispatcher: Dispatcher
    history: History
    outbox: Outbox
    summaries: Summaries
    transport: OneBotTransport
    port: int
    reloads: Mapping[str, Reload] = field(default_factory=dict)

    async def reload(self) -> None:
        """Read the files and the journal once more; runs that go on keep what they began with."""
        reload_all(self.reloads)
        if await self.history.reread():
            logger.info("the journal is read again as it is needed")
        else:
            logger.error("what was said stays in memory: the journal cannot be written at the moment")

    async def wait_idle(self) -> None:
        """Return once nothing is being answered, nothing is left to be sent, and nothing is being summarised."""
        await self.dispatcher.lanes.wait_idle()
        await self.outbox.wait_idle()
        await self.summaries.wait_idle()


@asynccontextmanager
async def open_service(
    settings: Settings, *, wrap: Wrap = as_it_is, grace: float = 0.0, mask: Mask | None = None
) -> AsyncIterator[Service]:
    """Run the service while the block runs; at its end, close everything in reverse order.

    Runs that go on at the end have `grace` seconds before they are cut off; nothing new is begun then.
    `wrap` may put something around each port (the model, the transport, the store): tests count and break there.
    `mask` keeps secrets from the owner's lines; without one, those of the settings.
    Raises ConfigError, inside a group, for what only shows when it is tried: a port that is taken.
    """
    clock, ids = SystemClock(), RandomIds()
    troubles: asyncio.Queue[str] = asyncio.Queue()
    async with AsyncExitStack() as stack:
        stack.callback(log_troubles, troubles)
        tell = troubles.put_nowait
        journal: Store = await stack.enter_async_context(open_journal(settings, clock=clock, trouble=tell))
        session = await stack.enter_async_context(make_session())
        found = find_tools(settings)
        report(found.problems)
        metrics = Metrics(tools=found.names, clock=clock)
        models = build_models(settings, session=session, wrap=wrap, metrics=metrics, clock=clock, ids=ids, tell=tell)
        web = HttpxWeb(clock=clock, user_agent=user_agent(settings), base_urls=settings.tools_mirrors)
        stack.push_async_callback(web.aclose)
        games = Games(clock=clock, file=settings.games_file)
        games.check()
        staff = Staff(settings, models=models, toolset=build_toolset(settings, found.tools, clock=clock), clock=clock)
        mask = mask or Mask(secrets_of(settings))
        followers = stack.enter_context(following(settings, mask=mask, clock=clock))
        calls, peers = Calls(boot=ids.trace()), Peers()
        transport = OneBotTransport(peers=peers, calls=calls)
        rooms = build_rooms(
            settings,
            model=models.main,
            transport=wrap(transport),
            store=WitnessedStore(wrap(journal), witnesses(settings, metrics)),
            ports=build_ports(settings, subagents=staff.subagents, web=web, games=games, clock=clock),
            toolset=staff.toolset,
            observers=[metrics, *followers],
            sight=build_sight(models, web=web, transport=transport),
            mask=mask,
            clock=clock,
            ids=ids,
        )
        await stack.enter_async_context(open_web(settings, metrics=metrics, dispatcher=rooms.dispatcher, peers=peers))
        await stack.enter_async_context(working(rooms, troubles))
        sink = CountedSink(rooms.dispatcher, metrics=metrics)
        onebot = open_onebot(settings, sink=sink, peers=peers, calls=calls, clock=clock, ids=ids)
        port = await stack.enter_async_context(onebot)
        await stack.enter_async_context(finishing(rooms, grace=grace))
        again = {**reloads(settings, rooms.turns, games), "the file of subagents": staff.reload}
        yield Service(rooms.dispatcher, rooms.history, rooms.outbox, rooms.summaries, transport, port, again)


@asynccontextmanager
async def working(rooms: Rooms, troubles: asyncio.Queue[str]) -> AsyncIterator[None]:
    """Everything in `bot/` that has tasks of its own, at work while the block runs; what was left is settled first."""
    async with rooms.outbox.open(), rooms.summaries.open(), rooms.dispatcher.lanes.open():
        await rooms.recoverer.start()
        loops = rooms.recoverer.run(), rooms.catchup.run(), rooms.dispatcher.deny_expired()
        async with background(*loops, tell_troubles(troubles, rooms.owner)):
            yield


@asynccontextmanager
async def finishing(rooms: Rooms, *, grace: float) -> AsyncIterator[None]:
    """At the end of the block, while everything is still open, come to an end: no new run, no new send."""
    try:
        yield
    finally:
        await rooms.dispatcher.finish(within=grace)
        await rooms.outbox.finish(within=LAST_ANSWERS)


def open_journal(
    settings: Settings, *, clock: Clock, trouble: Callable[[str], None]
) -> AbstractAsyncContextManager[Store]:
    """The journal that the settings name."""
    return open_store(
        settings.store_url.get_secret_value(),
        keep_days=settings.store_keep_days,
        keep_messages=settings.store_keep_messages,
        clock=clock,
        trouble=trouble,
        migrate=migrate,
    )


def reloads(settings: Settings, turns: Turns, games: Games) -> dict[str, Reload]:
    """What was read from files and is read once more on SIGHUP."""

    def reread_persona() -> tuple[Problem, ...]:
        try:
            turns.become(persona(settings))
        except ConfigError as error:
            return error.problems
        return ()

    return {"the persona": reread_persona, "the table of games": games.reload}


def migrate(connection: Connection) -> None:
    """Bring the database's schema up to date; Alembic is large, and an up-to-date database never needs it."""
    from adapters.storage.migrate import migrate as up

    up(connection)


def witnesses(settings: Settings, metrics: Metrics) -> list[Witness]:
    """Who sees what is written down."""
    return [metrics, ContentLog()] if settings.log_content else [metrics]


def user_agent(settings: Settings) -> str:
    """Who asks, and how to reach whoever runs it."""
    return f"FrostAgent/{version()}" + (f" (+{settings.tools_contact})" if settings.tools_contact else "")


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
    """Pass what the store and the models say on to the owner; lines are of one kind up to their bracket."""
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
    token = settings.onebot_access_token.get_secret_value()
    match settings.onebot_mode:
        case "reverse":
            async with ReverseServer(
                host=settings.onebot_host,
                port=settings.onebot_port,
                token=token,
                sink=sink,
                peers=peers,
                calls=calls,
                clock=clock,
            ) as server:
                yield server.port
        case "forward":
            client = ForwardClient(
                url=settings.onebot_url, token=token, sink=sink, peers=peers, calls=calls, clock=clock, ids=ids
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
            reconnects=peers.reconnects,
        )

    metrics.watch(look)
    match settings.web_port:
        case 0:
            yield
        case port:
            from adapters.web.readiness import Attendance
            from adapters.web.server import WebServer

            # A default that is taken is no reason to be silent in QQ; what somebody asked for must be had.
            asked_for = "web_port" in settings.model_fields_set
            ready = Attendance(peers.accounts, stopping=lambda: dispatcher.stopping)
            async with WebServer(
                host=settings.web_host, port=port, ready=ready, metrics=metrics.render, required=asked_for
            ):
                yield


def version() -> str:
    """The installed version, or "dev" where the project runs from a bare checkout."""
    try:
        return importlib.metadata.version("frostagent")
    except importlib.metadata.PackageNotFoundError:
        return "dev"
