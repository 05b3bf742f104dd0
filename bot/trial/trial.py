"""Opens a trial: a second service on the built-in simulator, whose journal is deleted at its end.

Its tools change nothing outside the simulated group. Loaded when a trial is opened.
"""

from __future__ import annotations

import os
import secrets
import shutil
import sys
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import Final

from pydantic import SecretStr

import tools as packaged_tools
from adapters.offline.server import OfflineModel
from adapters.offline.web import OfflineWeb
from adapters.simulator.server import Simulator
from adapters.simulator.world import demo_world
from bot.budget.trial_account import TrialAccount
from bot.core.conversation import Conversation
from bot.core.trial_group import TrialOptions
from bot.memory.personas import Personas
from bot.runtime.tool_discovery import Discovered, PackagedTools, discover
from bot.trial.isolated_settings import demo_model_settings, own_model_settings, trial_settings
from bot.trial.simulated_trial import OpenService, SimulatedTrial
from config.settings import Settings
from frostagent.cancellation import background
from frostagent.text.masking import Mask
from frostagent.types.errors import ConfigError
from frostagent.types.ports import Subagents
from frostagent.types.tools import Tool

PREFIX: Final = "frostagent-try-"  # of a trial's folder; the id of its process follows


def select_harmless_tools(ours: Iterable[Tool]) -> Discovered:
    """The tools that change nothing outside the simulated group: of all tools of the bot those that
    only compute or read, and of the packaged ones also those that declare to stay within their
    conversation, like sending a message.
    """
    packaged = {tool.name: tool for tool in discover(PackagedTools(packaged_tools)).tools}
    own = {tool.name: tool for tool in ours if tool.side_effects.is_harmless}
    for tool in packaged.values():
        # As packaged, since the bot's settings may have made it unavailable there.
        is_packaged = tool.name not in own or own[tool.name].function is tool.function
        if Subagents in tool.needs or (is_packaged and not tool.goes_beyond):
            own[tool.name] = tool  # its description names the subagents later, if any
    return Discovered(tuple(own[name] for name in sorted(own)))


@asynccontextmanager
async def open_trial(
    settings: Settings,
    wanted: TrialOptions,
    *,
    open_service: OpenService,
    tools: Discovered,
    texts: Mapping[str, str],
    account: TrialAccount | None,
    mask: Mask,
) -> AsyncIterator[SimulatedTrial]:
    """Run a trial while the block runs. `texts` are the personas' current texts by key. With an
    `account` the bot's own model is asked and charged to it, else the demo model is used. If its
    persona cannot be used, the trial has a `trouble`. Raises ConfigError, inside a group, and
    OSError if its journal cannot be created.
    """
    trial = SimulatedTrial(world := demo_world(), wanted=wanted, account=account)
    token = secrets.token_hex(16)  # else others on this machine could listen
    async with AsyncExitStack() as stack:
        remove_leftovers()
        folder = stack.enter_context(TemporaryDirectory(prefix=f"{PREFIX}{os.getpid()}-"))
        changes = trial_settings(settings, folder, frozenset(tools.names))
        if account is not None:
            changes |= own_model_settings(settings, account.ceiling)
        else:
            model = await stack.enter_async_context(OfflineModel())
            web = await stack.enter_async_context(OfflineWeb())
            changes |= demo_model_settings(model.base_url, search_url=web.url)
            changes["tools_mirrors"] = settings.tools_mirrors | web.mirrors
        simulator = await stack.enter_async_context(
            Simulator(world, token=token, on_sent=trial.note_sent, on_gesture=trial.note_gesture)
        )
        changes |= {"onebot_url": await simulator.serve(), "onebot_access_token": SecretStr(token)}
        service = await stack.enter_async_context(
            open_service(
                settings.model_copy(update=changes),
                account=account,
                aside=tools,
                mask=mask,
                ousted=keep_running,
            )
        )
        stack.callback(trial.close)
        await simulator.wait_connected()
        if not await use_persona(service.app.personas, trial.where, wanted, texts):
            trial.trouble = "persona"
        trial.connect(service, simulator)
        await stack.enter_async_context(background(trial.line_watcher.run()))
        if wanted.question:
            trial.propose(wanted.asker, wanted.question, wanted.source)
        yield trial


async def use_persona(
    personas: Personas, where: Conversation, wanted: TrialOptions, texts: Mapping[str, str]
) -> bool:
    """Set the personas' texts, and choose the wanted persona and text. False if that fails."""
    for key, text in texts.items():
        await personas.change(key, text)
    if wanted.text and not await personas.change(wanted.key, wanted.text):
        return False
    if wanted.key and not await personas.choose(where, wanted.key):
        return False
    return not (wanted.key or wanted.text) or personas.key(where) == wanted.key


def remove_leftovers() -> None:
    """Delete the folders of trials whose process was killed: they hold messages of people."""
    for folder in Path(gettempdir()).glob(f"{PREFIX}*-*"):
        pid = folder.name.removeprefix(PREFIX).partition("-")[0]
        if pid.isascii() and pid.isdigit() and not _is_alive(int(pid)):
            shutil.rmtree(folder, ignore_errors=True)


def _is_alive(pid: int) -> bool:
    """Whether another process has this id. This one has one trial at a time, so its own is over."""
    if pid == os.getpid():
        return False
    if sys.platform == "win32":  # it has no harmless signal, 0 is Ctrl-C: assume it is alive
        return True
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


def keep_running(_: ConfigError) -> None:
    """A trial that loses its journal does not end the process, as the bot itself would."""
