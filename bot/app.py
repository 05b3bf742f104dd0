"""The composition root: builds the object graph and owns the lifetimes. READ FIRST.

adapters/onebot  --events-->  Dispatcher -> Lanes -> Turns -> Engine -> ChatModel, Toolset
                 <--actions-  Transport <- Outbox <- Delivery <-' (and <- send_message, in the middle of a run)
adapters/storage <--entries-  Dispatcher, Turns, Recorder, Outbox;  --at start-> Recoverer
adapters/metrics <-- run events, entries, events, model requests;  adapters/web shows them
"""

from __future__ import annotations

import asyncio
import importlib.metadata
from collections.abc import AsyncIterator, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Protocol, TypeVar

from aiohttp import ClientSession
from sqlalchemy import Connection

import tools
from adapters.fetching.client import HttpxWeb
from adapters.media.folder import MediaFolder
from adapters.metrics.metrics import Metrics
from adapters.metrics.ports import CountedModel, CountedSink
from adapters.metrics.vitals import Vitals
from adapters.onebot.calls import Calls
from adapters.onebot.forward_ws import ForwardClient
from adapters.onebot.peers import Peers
from adapters.onebot.reverse_ws import ReverseServer
from adapters.onebot.transport import OneBotTransport
from adapters.openai.client import OpenAIModel, make_session
from adapters.storage.store import open_store
from bot.alarm import Alarm
from bot.catchup import Catchup
from bot.clock import RandomIds, SystemClock
from bot.delivery import Delivery
from bot.dispatcher import Dispatcher
from bot.domain.masking import Mask
from bot.domain.ports import ChatModel, Clock, EventSink, Ids, Media, Store, Subagents, Transport, Web, Witness
from bot.engine import Engine
from bot.history import History
from bot.models import RetryingModel
from bot.observers import LogObserver, Observers
from bot.outbox import Outbox
from bot.owner import Owner
from bot.perception import Perception
from bot.policy.wake import Rules
from bot.recorder import Recorder
from bot.recovery import Recoverer
from bot.subagents import CODER_PROMPT, NamedSubagents, Subagent
from bot.toolset import Toolset
from bot.turn import Persona, Turns
from bot.witnesses import ContentLog, WitnessedStore
from config.secrets import secrets_of
from config.settings import Endpoint, Settings, read_persona

T = TypeVar("T")


class Wrap(Protocol):
    """Puts something around a port."""

    def __call__(self, port: T, /) -> T: ...


def as_it_is(port: T, /) -> T:
    """No wrapping."""
    return port


@dataclass(frozen=True, slots=True)
class Service:
    """A running service. `port` is where the reverse server listens, 0 in forward mode."""

    dispatcher: Dispatcher
    outbox: Outbox
    transport: OneBotTransport
    port: int

    async def wait_idle(self) -> None:
        """Return once nothing is being answered and nothing is left to be sent."""
        await self.dispatcher.lanes.wait_idle()
        await self.outbox.wait_idle()


@dataclass(frozen=True, slots=True)
class Rooms:
    """The rooms of `bot/`, connected with each other."""

    dispatcher: Dispatcher
    outbox: Outbox
    owner: Owner
    recoverer: Recoverer
    catchup: Catchup


@asynccontextmanager
async def open_service(settings: Settings, *, wrap: Wrap = as_it_is) -> AsyncIterator[Service]:
    """Run the service while the block runs; at its end, close everything in reverse order.

    `wrap` may put something around each port (the model, the transport, the store): tests count and break there.
    Raises ConfigError, inside a group, for what only shows when it is tried: a port that is taken.
    """
    clock, ids = SystemClock(), RandomIds()
    troubles: asyncio.Queue[str] = asyncio.Queue()
    async with AsyncExitStack() as stack:
        journal: Store = await stack.enter_async_context(
            open_store(
                settings.store_url.get_secret_value(),
                keep_days=settings.store_keep_days,
                keep_messages=settings.store_keep_messages,
                clock=clock,
                trouble=troubles.put_nowait,
                migrate=migrate,
            )
        )
        session = await stack.enter_async_context(make_session())
        metrics = Metrics(tools=[tool.name for tool in tools.discover()], clock=clock)
        model = partial(build_model, session=session, wrap=wrap, metrics=metrics, clock=clock, ids=ids)
        web = HttpxWeb(clock=clock, user_agent=f"FrostAgent/{version()}", base_urls=settings.tools_mirrors)
        stack.push_async_callback(web.aclose)
        coder = Subagent("Coder", model(settings.coder_endpoint), CODER_PROMPT)
        ports: dict[type, object] = {
            Media: MediaFolder(settings.media_dir, mode=settings.media_send),
            Subagents: NamedSubagents([coder]),
            Web: web,
        }
        calls, peers = Calls(boot=ids.trace()), Peers()
        transport = OneBotTransport(peers=peers, calls=calls)
        carrier: Transport = transport
        rooms = build_rooms(
            settings,
            model=model(settings.main_model),
            transport=wrap(carrier),
            store=WitnessedStore(wrap(journal), witnesses(settings, metrics)),
            ports=ports,
            metrics=metrics,
            clock=clock,
            ids=ids,
        )
        await stack.enter_async_context(open_web(settings, metrics=metrics, dispatcher=rooms.dispatcher, peers=peers))
        recovery = await journal.recover()
        await stack.enter_async_context(rooms.outbox.open())
        await stack.enter_async_context(rooms.dispatcher.lanes.open())
        await rooms.recoverer.recover(recovery)
        await stack.enter_async_context(
            background(rooms.catchup.run(), rooms.dispatcher.deny_expired(), tell_troubles(troubles, rooms.owner))
        )
        sink = CountedSink(rooms.dispatcher, metrics=metrics)
        onebot = open_onebot(settings, sink=sink, peers=peers, calls=calls, clock=clock, ids=ids)
        port = await stack.enter_async_context(onebot)
        yield Service(rooms.dispatcher, rooms.outbox, transport, port)


def migrate(connection: Connection) -> None:
    """Bring the database's schema up to date; Alembic is large, and an up-to-date database never needs it."""
    from adapters.storage.migrate import migrate as up

    up(connection)


def build_model(
    endpoint: Endpoint, *, session: ClientSession, wrap: Wrap, metrics: Metrics, clock: Clock, ids: Ids
) -> ChatModel:
    """A model that is asked again when it is busy; each attempt counts."""
    client: ChatModel = OpenAIModel(
        session=session,
        base_url=endpoint.base_url,
        api_key=endpoint.api_key.get_secret_value(),
        model=endpoint.model,
        now=clock.now,
    )
    counted = CountedModel(wrap(client), metrics=metrics, clock=clock)
    return RetryingModel(counted, clock=clock, ids=ids)


def witnesses(settings: Settings, metrics: Metrics) -> list[Witness]:
    """Who sees what is written down."""
    return [metrics, ContentLog()] if settings.log_content else [metrics]


def build_rooms(
    settings: Settings,
    *,
    model: ChatModel,
    transport: Transport,
    store: Store,
    ports: dict[type, object],
    metrics: Metrics,
    clock: Clock,
    ids: Ids,
) -> Rooms:
    """The rooms of `bot/`, each given what it needs."""
    history = History(store=store)
    perception = Perception(transport=transport, history=history)
    toolset = Toolset(tools.discover(), clock=clock)
    outbox = Outbox(transport=transport, store=store, clock=clock, ids=ids, rate=settings.bot_send_rate)
    owner = Owner(owners=settings.bot_owners, outbox=outbox, clock=clock)
    alarm = Alarm(owner, mask=Mask(secrets_of(settings)))
    observer = Observers([Recorder(store=store, clock=clock), LogObserver(), metrics, alarm])
    engine = Engine(model=model, toolset=toolset, clock=clock, observer=observer, max_steps=settings.bot_max_steps)
    turns = Turns(
        engine=engine,
        delivery=Delivery(outbox=outbox, history=history, owner=owner, clock=clock),
        perception=perception,
        history=history,
        store=store,
        clock=clock,
        ids=ids,
        persona=Persona(read_persona(settings), settings.bot_name),
        owners=settings.bot_owners,
        ports=ports,
    )
    dispatcher = Dispatcher(
        rules=build_rules(settings),
        turns=turns,
        perception=perception,
        history=history,
        store=store,
        outbox=outbox,
        owner=owner,
        clock=clock,
    )
    return Rooms(
        dispatcher=dispatcher,
        outbox=outbox,
        owner=owner,
        recoverer=Recoverer(
            store=store, dispatcher=dispatcher, turns=turns, outbox=outbox, toolset=toolset, clock=clock
        ),
        catchup=Catchup(transport=transport, dispatcher=dispatcher, outbox=outbox, clock=clock),
    )


def build_rules(settings: Settings) -> Rules:
    """Whom the bot listens to."""
    return Rules(
        names=(settings.bot_name, *settings.bot_aliases),
        owners=settings.bot_owners,
        groups=settings.bot_groups,
        users=settings.bot_users,
        blocked=settings.bot_block,
    )


@asynccontextmanager
async def background(*loops: Coroutine[None, None, None]) -> AsyncIterator[None]:
    """Endless work that lasts as long as the block."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(loop) for loop in loops]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()


async def tell_troubles(troubles: asyncio.Queue[str], owner: Owner) -> None:
    """Pass what the store says on to the owner."""
    while True:
        owner.tell("store", await troubles.get())


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
            ready = Attendance(peers.accounts)
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
