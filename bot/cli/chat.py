"""The chat on standard input: the ordinary service with the simulator in place of QQ, and the demo
model if no model is set.

Each line is a message in the simulated group, each message of the bot is printed as `bot: ...`. On
a terminal lines are sent as they are typed; otherwise each line waits until the previous one is
settled. A line that begins with `!` is not sent: it is a command to the simulator, for example to
cause a fault. Approvals are asked for here; a line such as `同意 A1` answers one.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import threading
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TextIO

from pydantic import SecretStr

from adapters.control.server import ControlServer
from adapters.offline.server import MEDIA_FOLDER, OfflineModel
from adapters.offline.web import OfflineWeb
from adapters.simulator.call import Gesture, SentMessage
from adapters.simulator.commands import MARK, obey
from adapters.simulator.console import render, render_gesture
from adapters.simulator.server import Simulator
from adapters.simulator.world import World, demo_world
from bot.app import Service, open_service
from bot.cli.control import chat_socket_of
from bot.console.console import Link
from bot.core.language import CATALOGUE, Phrase
from bot.core.trial_group import TrialOptions
from bot.trial.isolated_settings import isolated_settings
from bot.trial.simulated_trial import MISSED, SimulatedTrial, wait_idle, wait_settled
from config.settings import Settings, read_persona
from frostagent.cancellation import background
from frostagent.clock import SystemClock

logger = logging.getLogger(__name__)

DEMO = Phrase(
    "FrostAgent 终端聊天，用内置的演示模型；要用真的，请设置 LLM_BASE_URL、LLM_API_KEY 和"
    " LLM_MODEL。",
    "FrostAgent chat with the built-in demo model. For a real one, set LLM_BASE_URL, LLM_API_KEY"
    " and LLM_MODEL.",
)
HELP = Phrase(
    "你是群里的 user1。`@bot 你好` 是对机器人说，`user2: 你好` 是以别人的身份说。按 Ctrl-D 结束。\n"
    "`!help` 列出可以故意让什么出错、还能发生什么。",
    "You are user1 in a group. `@bot hi` speaks to the bot, `user2: hi` speaks as another member."
    " End with Ctrl-D.\n"
    "`!help` lists what you can make go wrong, and what else can happen.",
)
IN_A_BROWSER = Phrase(
    "在浏览器里打开（五分钟内有效，只能用一次；换浏览器时在这个目录运行"
    " `frostagent console`）：{link}",
    "In a browser (this link works once, within five minutes; for another one, run"
    " `frostagent console` in this folder): {link}",
)
CATALOGUE.register(__name__, globals())
TIME = f"{MARK}time"
LATEST = 20  # a terminal's last lines, whose answers are awaited at the end


class PutForward(SystemClock):
    """The system's clock; its time of day can be moved forward."""

    def __init__(self) -> None:
        self._ahead = 0.0

    def now(self) -> float:
        return SystemClock.now() + self._ahead

    def put_forward(self, seconds: float) -> None:
        """Move the time of day forward by this many seconds."""
        self._ahead += seconds


async def converse(
    settings: Settings, source: TextIO, say: Callable[[str], None], tell: Callable[[str], None]
) -> None:
    """Chat until the source ends. `say` gets what the bot says, `tell` gets lines about the chat
    itself.
    """
    clock = PutForward()
    world = demo_world(now=clock.now)
    wanted = TrialOptions(is_real=bool(settings.llm_base_url))
    trial = SimulatedTrial(world, wanted=wanted) if source.isatty() else None
    control = ControlServer(chat_socket_of(settings.store_url.get_secret_value()))
    async with (
        control.open(),
        open_chat(settings, world, say, tell, trial, clock=clock) as (service, simulator),
    ):
        if source.isatty():
            tell(HELP.fill())
        if trial is not None and service.console_link is not None:
            trial.connect(service, simulator)
            await control.listen({"console": partial(_console, service.console_link)})
            tell(IN_A_BROWSER.fill(link=service.console_link()))
        said: list[int] = []
        async for line in read_lines(source):
            if service.app.decisions.calls.take_line(line):
                if not source.isatty():
                    await wait_idle(service)
                continue
            if is_travel := line.startswith(TIME) and not source.isatty():
                await wait_idle(service)  # finish earlier messages at the earlier time
            new = await handle_line(simulator, line, tell)
            said += new
            if is_travel:
                await wait_idle(service)  # a job may have become due
            if trial is not None and new:
                trial.note_said(*new)
            # A person does not wait, and if a script keeps the bot offline, waiting is in vain.
            if not (source.isatty() or simulator.sockets.away):
                await wait_settled(service, simulator, said)
                said.clear()
        if said:
            await wait_settled(service, simulator, said[-LATEST:])
        await wait_idle(service)


async def _console(link: Link) -> Mapping[str, Any]:
    """A link that opens this chat in a browser once."""
    return {"link": link()}


def speaking_as(settings: Settings, file: Path) -> Settings:
    """The settings with only this persona. Raises ConfigError for an unusable file."""
    alone = {"system_prompt": "", "personas_dir": None, "groups_file": None}
    changed = settings.model_copy(update={"bot_persona": file, **alone})
    read_persona(changed)
    return changed


def chat_settings(settings: Settings, folder: str, people: frozenset[int]) -> dict[str, object]:
    """The settings that a chat of these `people` overrides, with its journal in this folder: those
    of any isolated bot, and a console for this machine only.
    """
    return isolated_settings(settings, folder, people=people) | {
        "console_host": "127.0.0.1",
        "console_origin": "",
        "console_proxy": "",
        "console_totp": SecretStr(""),
    }


async def handle_line(simulator: Simulator, line: str, tell: Callable[[str], None]) -> list[int]:
    """Send the line as a message, or execute it as a command. Returns the IDs of the resulting
    messages.
    """
    if line.startswith(MARK):
        tell(await obey(simulator, line))
        return []
    message_id = await simulator.say_line(line)
    if message_id in simulator.missed:
        tell(MISSED)
    return [] if message_id is None else [message_id]


@asynccontextmanager
async def open_chat(
    settings: Settings,
    world: World,
    say: Callable[[str], None],
    tell: Callable[[str], None],
    trial: SimulatedTrial | None = None,
    *,
    clock: PutForward | None = None,
) -> AsyncIterator[tuple[Service, Simulator]]:
    """The service connected to its own simulator on free loopback ports; with a `trial`, also in a
    browser.
    """
    home = next(iter(world.groups))
    clock = clock or PutForward()

    def names() -> dict[int, str]:
        return {number: name for name, number in world.people(home).items()}

    def print_sent(message: SentMessage) -> None:
        say(render(message, names(), home=home))
        if trial is not None:
            trial.note_sent(message)

    def print_gesture(gesture: Gesture) -> None:
        say(render_gesture(gesture, names()))
        if trial is not None:
            trial.note_gesture(gesture)

    async with AsyncExitStack() as stack:
        folder = stack.enter_context(
            TemporaryDirectory(prefix="frostagent-", ignore_cleanup_errors=True)
        )
        changes = chat_settings(settings, folder, frozenset(names()))
        if not settings.llm_base_url:
            model = await stack.enter_async_context(OfflineModel())
            changes |= {
                "llm_base_url": model.base_url,
                "llm_model": model.name,
                "llm_vision_model": model.name,
                "media_dir": MEDIA_FOLDER,
            }
            if not settings.has_web:
                offline = await stack.enter_async_context(OfflineWeb())
                changes |= {
                    "search_url": offline.url,
                    "tools_mirrors": settings.tools_mirrors | offline.mirrors,
                }
            tell(DEMO.fill())
        simulator = await stack.enter_async_context(
            Simulator(world, on_sent=print_sent, on_gesture=print_gesture)
        )
        simulator.robots.on_said = lambda name, said: say(f"{name}: @bot {said}")
        changes["onebot_url"] = await simulator.serve()
        service = await stack.enter_async_context(
            open_service(
                settings.model_copy(update=changes), terminal=tell, trying=trial, clock=clock
            )
        )

        def travel(seconds: float) -> None:
            clock.put_forward(seconds)
            service.app.scheduler.look()

        simulator.on_travel = travel
        await simulator.wait_connected()
        if trial is not None:
            await stack.enter_async_context(background(trial.line_watcher.run()))
        yield service, simulator


async def read_lines(source: TextIO) -> AsyncIterator[str]:
    """The lines of a blocking stream, read in a daemon thread."""
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
    """Print to standard output and flush. If the reader has closed the pipe (`| head -1`), the rest
    is discarded silently.
    """
    try:
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
