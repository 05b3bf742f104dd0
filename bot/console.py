"""The chat on standard input: the ordinary service, with the simulator for QQ and the demo model where none is set.

Each line is a message in the simulated group, each message of the bot is printed as `bot: ...`. On a terminal lines
are sent as they are typed; otherwise the next line waits until everything about the last one is settled.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TextIO

from adapters.offline.server import MEDIA_FOLDER, OfflineModel
from adapters.simulator.call import SentMessage
from adapters.simulator.console import render
from adapters.simulator.server import Simulator
from adapters.simulator.world import World, demo_world
from bot.app import Service, open_service
from config.settings import Settings

logger = logging.getLogger(__name__)

SETTLED_WITHIN = 600.0  # seconds for one line; a run itself ends sooner
DEMO = """\
FrostAgent chat with the built-in demo model: set LLM_BASE_URL, LLM_API_KEY and LLM_MODEL for a real one."""
HELP = """\
You are user1 in a group. `@bot hi` speaks to the bot, `user2: hi` speaks as somebody else. End with Ctrl-D."""


async def converse(settings: Settings, source: TextIO, say: Callable[[str], None], tell: Callable[[str], None]) -> None:
    """Chat until the source ends: `say` gets what the bot says, `tell` what is said about the chat itself."""
    world = demo_world()
    async with open_chat(settings, world, say, tell) as (service, simulator):
        if source.isatty():
            tell(HELP)
        async for line in read_lines(source):
            message_id = await simulator.say_line(line)
            if message_id is None or source.isatty():
                continue
            await settle(service, world, message_id)
        async with asyncio.timeout(SETTLED_WITHIN):
            await service.dispatcher.lanes.wait_idle()


@asynccontextmanager
async def open_chat(
    settings: Settings, world: World, say: Callable[[str], None], tell: Callable[[str], None]
) -> AsyncIterator[tuple[Service, Simulator]]:
    """The service connected to a simulator of its own, on loopback ports nobody else uses."""
    home = next(iter(world.groups))

    def print_sent(message: SentMessage) -> None:
        names = {number: name for name, number in world.people(home).items()}
        say(render(message, names, home=home))

    async with AsyncExitStack() as stack:
        changes: dict[str, object] = {}
        if not settings.llm_base_url:
            model = await stack.enter_async_context(OfflineModel())
            changes = {"llm_base_url": model.base_url, "llm_model": "demo", "media_dir": MEDIA_FOLDER}
            tell(DEMO)
        simulator = await stack.enter_async_context(Simulator(world, on_sent=print_sent))
        changes |= {"onebot_mode": "forward", "onebot_url": await simulator.serve()}
        service = await stack.enter_async_context(open_service(settings.model_copy(update=changes)))
        await simulator.wait_connected()
        yield service, simulator


async def settle(service: Service, world: World, message_id: int) -> None:
    """Wait until the message has been taken and all that came of it is done. Raises TimeoutError."""
    home = next(iter(world.groups))
    async with asyncio.timeout(SETTLED_WITHIN):
        await service.dispatcher.wait_settled((world.self_id, "group", home, str(message_id)))


async def read_lines(source: TextIO) -> AsyncIterator[str]:
    """The lines of a blocking stream, read in a thread that does not hold up the end of the process."""
    loop = asyncio.get_running_loop()
    lines: asyncio.Queue[str | None] = asyncio.Queue()

    def read() -> None:
        try:
            for line in source:
                loop.call_soon_threadsafe(lines.put_nowait, line.rstrip("\r\n"))
        except (ValueError, OSError, UnicodeDecodeError) as error:
            logger.warning("standard input cannot be read further: %s", error)
        finally:
            loop.call_soon_threadsafe(lines.put_nowait, None)

    threading.Thread(target=read, daemon=True, name="standard input").start()
    while (line := await lines.get()) is not None:
        yield line


def print_line(text: str) -> None:
    """To standard output, at once; letters the terminal cannot show become question marks."""
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(text.encode(encoding, "replace").decode(encoding) + "\n")
    sys.stdout.flush()
