"""The composition root: builds the object graph and owns the lifetimes. READ FIRST.

adapters/onebot  --events-->  Dispatcher -> Lanes -> Turns -> Engine -> ChatModel, Toolset
                 <--actions-  Transport  <- Delivery <-' (and <- send_message, in the middle of a run)
"""

from __future__ import annotations

import asyncio
import importlib.metadata
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

import tools
from adapters.fetching.client import HttpxWeb
from adapters.media.folder import MediaFolder
from adapters.onebot.calls import Calls
from adapters.onebot.forward_ws import ForwardClient
from adapters.onebot.peers import Peers
from adapters.onebot.reverse_ws import ReverseServer
from adapters.onebot.transport import OneBotTransport
from adapters.openai.client import OpenAIModel, make_session
from bot.clock import RandomIds, SystemClock
from bot.delivery import Delivery
from bot.dispatcher import Dispatcher
from bot.domain.ports import ChatModel, Clock, Ids, Media, Subagents, Web
from bot.engine import Engine
from bot.history import History
from bot.models import RetryingModel
from bot.observers import LogObserver
from bot.perception import Perception
from bot.policy.wake import Rules
from bot.subagents import CODER_PROMPT, NamedSubagents, Subagent
from bot.toolset import Toolset
from bot.turn import Persona, Turns
from config.settings import Endpoint, Settings, read_persona


@dataclass(frozen=True, slots=True)
class Service:
    """A running service. `port` is where the reverse server listens, 0 in forward mode."""

    dispatcher: Dispatcher
    transport: OneBotTransport
    port: int


@asynccontextmanager
async def open_service(settings: Settings) -> AsyncIterator[Service]:
    """Run the service while the block runs; at its end, close everything in reverse order.

    Raises ConfigError, inside a group, for what only shows when it is tried: a port that is taken.
    """
    clock, ids = SystemClock(), RandomIds()
    async with AsyncExitStack() as stack:
        session = await stack.enter_async_context(make_session())

        def model(endpoint: Endpoint) -> ChatModel:
            key = endpoint.api_key.get_secret_value()
            client = OpenAIModel(
                session=session, base_url=endpoint.base_url, api_key=key, model=endpoint.model, now=clock.now
            )
            return RetryingModel(client, clock=clock, ids=ids)

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
        dispatcher = build_dispatcher(
            settings, model=model(settings.main_model), transport=transport, ports=ports, clock=clock, ids=ids
        )
        await stack.enter_async_context(dispatcher.lanes.open())
        port = await stack.enter_async_context(
            open_onebot(settings, sink=dispatcher, peers=peers, calls=calls, clock=clock, ids=ids)
        )
        yield Service(dispatcher, transport, port)


def build_dispatcher(
    settings: Settings,
    *,
    model: ChatModel,
    transport: OneBotTransport,
    ports: dict[type, object],
    clock: Clock,
    ids: Ids,
) -> Dispatcher:
    """The rooms of `bot/`, each given what it needs."""
    history = History()
    perception = Perception(transport=transport, history=history)
    engine = Engine(
        model=model,
        toolset=Toolset(tools.discover(), clock=clock),
        clock=clock,
        observer=LogObserver(),
        max_steps=settings.bot_max_steps,
    )
    turns = Turns(
        engine=engine,
        delivery=Delivery(transport=transport, history=history, clock=clock),
        perception=perception,
        history=history,
        ids=ids,
        persona=Persona(read_persona(settings), settings.bot_name),
        owners=settings.bot_owners,
        ports=ports,
    )
    rules = Rules(
        names=(settings.bot_name, *settings.bot_aliases),
        owners=settings.bot_owners,
        groups=settings.bot_groups,
        users=settings.bot_users,
        blocked=settings.bot_block,
    )
    return Dispatcher(rules=rules, turns=turns, perception=perception, history=history, clock=clock)


@asynccontextmanager
async def open_onebot(
    settings: Settings, *, sink: Dispatcher, peers: Peers, calls: Calls, clock: Clock, ids: Ids
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
            async with asyncio.TaskGroup() as group:
                dialling = group.create_task(client.run())
                yield 0
                dialling.cancel()


def version() -> str:
    """The installed version, or "dev" where the project runs from a bare checkout."""
    try:
        return importlib.metadata.version("frostagent")
    except importlib.metadata.PackageNotFoundError:
        return "dev"
