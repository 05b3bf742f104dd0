"""A trial: a second service on the built-in simulator, with a journal of its own that goes with it.

What it is offered changes nothing outside of the simulated group: see `offered`. Loaded when
somebody opens one.
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
from typing import Any, Final, TypeVar

from pydantic import SecretStr

import tools
from adapters.offline.server import MEDIA_FOLDER, OfflineModel
from adapters.simulator.server import Simulator
from adapters.simulator.world import demo_world
from bot.domain.cancellation import background
from bot.domain.errors import ConfigError
from bot.domain.events import Conversation
from bot.domain.masking import Mask
from bot.domain.ports import Subagents
from bot.domain.tool import Tool
from bot.domain.trial_group import TrialLimits, TrialOptions
from bot.memory.personas import Personas
from bot.trial.simulated_trial import Opens, SimulatedTrial, isolated_settings
from bot.trial.trial_budget import TrialBudget
from bot.wiring.discovery import Discovered, PackagedTools, discover
from config.settings import Settings

PREFIX: Final = "frostagent-try-"  # of the folder of a trial, before the number of its process

T = TypeVar("T")

A_QUESTION: Final = 8  # requests of one question, at most
DAY_LIMITS: Final = tuple(
    f"bot_day_{of}_{whose}" for of in ("cost", "tokens") for whose in ("user", "group", "all")
)


def offered(ours: Iterable[Tool]) -> Discovered:
    """Of all tools of the bot those that change nothing outside of the simulated group: what only
    computes or reads, and of the packaged ones what stays in its conversation by its own word, as
    speaking there.
    """
    packaged = {tool.name: tool for tool in discover(PackagedTools(tools)).tools}
    own = {tool.name: tool for tool in ours if tool.side_effects.is_harmless}
    for tool in packaged.values():
        if Subagents in tool.needs or (tool.name not in own and not tool.goes_beyond):
            own[tool.name] = tool  # whom it asks is said when there are some
    return Discovered(tuple(own[name] for name in sorted(own)))


def settings_aside(settings: Settings, folder: str, names: frozenset[str]) -> dict[str, Any]:
    """The settings in which any trial differs from the bot: nothing of it is written down
    elsewhere, nobody of QQ has a word in it, and nobody waits without need.
    """
    return {
        **isolated_settings(settings, folder),
        "log_runs": None,
        "log_content": False,
        "groups_file": None,
        "bot_memory": False,
        "bot_pace": False,
        "bot_debounce": 0.0,
        "media_send": "base64",
        "stt_base_url": "",
        "stt_api_key": SecretStr(""),
        "tools_group": False,
        "tools_dir": None,
        "tools_deny": tuple(name for name in settings.tools_deny if name in names),
        "tools_approve": tuple(name for name in settings.tools_approve if name in names),
        "tools_audience": {
            name: whose for name, whose in settings.tools_audience.items() if name in names
        },
        **dict.fromkeys(DAY_LIMITS, 0),
    }


def demo_model(url: str) -> dict[str, Any]:
    """That only the demo model is asked, and no key of anybody is at hand."""
    return {
        "llm_base_url": url,
        "llm_api_key": SecretStr(""),
        "llm_model": OfflineModel.name,
        "llm_dialect": "",
        "llm_fallbacks": (),
        "llm_vision_model": OfflineModel.name,
        "llm_cheap_model": "",
        "llm_context": 0,
        "coder_base_url": "",
        "coder_api_key": SecretStr(""),
        "coder_model": "",
        "subagents_file": None,
        "subagent_keys": {},
        "qweather_key": SecretStr(""),
        "qweather_jwt_private_key": SecretStr(""),
        "amap_key": SecretStr(""),
        "media_dir": MEDIA_FOLDER,
    }


def real_model(settings: Settings, ceiling: TrialLimits) -> dict[str, Any]:
    """That the bot's own model is asked, and told how much is left: for that the limits of a day
    are those of a trial. What keeps them is the budget.
    """
    limit = min(settings.bot_run_requests or A_QUESTION, A_QUESTION)
    return {
        "bot_day_cost_all": ceiling.cost,
        "bot_day_tokens_all": ceiling.tokens,
        "bot_run_requests": limit,
    }


@asynccontextmanager
async def open_trial(
    settings: Settings,
    wanted: TrialOptions,
    *,
    opening: Opens,
    found: Discovered,
    texts: Mapping[str, str],
    budget: TrialBudget | None,
    mask: Mask,
) -> AsyncIterator[SimulatedTrial]:
    """A trial while the block runs; `texts` of personas are those that count now. With
    a `budget` the bot's own model is asked, which it pays for, else the demo's. One whose persona
    could not be taken over has a `trouble`. Raises ConfigError, inside a group, and OSError where
    there is no room for its journal.
    """
    trial = SimulatedTrial(world := demo_world(), wanted=wanted, budget=budget)
    token = secrets.token_hex(16)  # else others on this machine could listen
    async with AsyncExitStack() as stack:
        sweep()
        folder = stack.enter_context(TemporaryDirectory(prefix=f"{PREFIX}{os.getpid()}-"))
        changes = settings_aside(settings, folder, frozenset(found.names))
        if budget is not None:
            changes |= real_model(settings, budget.most)
        else:
            changes |= demo_model((await stack.enter_async_context(OfflineModel())).base_url)
        simulator = await stack.enter_async_context(
            Simulator(world, token=token, on_sent=trial.note_sent, on_gesture=trial.note_gesture)
        )
        changes |= {"onebot_url": await simulator.serve(), "onebot_access_token": SecretStr(token)}
        service = await stack.enter_async_context(
            opening(
                settings.model_copy(update=changes),
                wrap=as_it_is if budget is None else budget.around,
                aside=found,
                mask=mask,
                ousted=let_go,
            )
        )
        stack.callback(trial.close)
        await simulator.wait_connected()
        if not await take_over(service.rooms.keeping.personas, trial.where, wanted, texts):
            trial.trouble = "persona"
        trial.connect(service, simulator)
        await stack.enter_async_context(background(trial.seen_out.run()))
        if wanted.question:
            trial.propose(wanted.asker, wanted.question, wanted.source)
        yield trial


async def take_over(
    personas: Personas, where: Conversation, wanted: TrialOptions, texts: Mapping[str, str]
) -> bool:
    """Tell its personas what they are told, and be the one that is wanted; whether it is that one,
    by the text that is wanted.
    """
    for key, text in texts.items():
        await personas.change(key, text)
    if wanted.text and not await personas.change(wanted.key, wanted.text):
        return False
    if wanted.key and not await personas.choose(where, wanted.key):
        return False
    return not (wanted.key or wanted.text) or personas.key(where) == wanted.key


def sweep() -> None:
    """Remove what trials of killed processes have left: there is what people said."""
    for folder in Path(gettempdir()).glob(f"{PREFIX}*-*"):
        pid = folder.name.removeprefix(PREFIX).partition("-")[0]
        if pid.isascii() and pid.isdigit() and not _is_alive(int(pid)):
            shutil.rmtree(folder, ignore_errors=True)


def _is_alive(pid: int) -> bool:
    """Whether there is such a process, other than this one, which has one trial at a time."""
    if pid == os.getpid():
        return False
    if sys.platform == "win32":  # there is no harmless signal, 0 is Ctrl-C: it may be alive
        return True
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


def as_it_is(port: T, /) -> T:
    """Nobody looks at it."""
    return port


def let_go(_: ConfigError) -> None:
    """Its journal is nobody else's, so that nobody takes it away."""
