"""Runs all checks concurrently, for the command or within a running bot. A check that hangs or
fails is a problem of its own and does not affect the others.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from adapters.fetching.client import HttpxWeb
from bot.cli.checks import Check, failure, failures, masked
from bot.cli.doctor.cluster import check_cluster, online_anywhere
from bot.cli.doctor.configuration import check_limits, check_settings, check_trust
from bot.cli.doctor.models import (
    Charge,
    check_clock,
    check_coder,
    check_fallbacks,
    check_main_model,
    check_vision,
    free,
)
from bot.cli.doctor.onebot import check_forward, check_media_url, check_ports, check_reverse
from bot.cli.doctor.storage import check_folders, check_privacy, check_store
from bot.cli.doctor.tools import (
    check_documents,
    check_games,
    check_search,
    check_tools,
    check_versions,
    check_weather,
)
from bot.cli.mcp_commands import check_servers
from bot.configured_tools import search_hosts, weather_keys
from bot.core.console_views import Finding
from bot.core.language import CATALOGUE, Phrase
from bot.runtime.version import user_agent
from config.endpoints import Endpoint
from config.secrets import all_secrets
from config.settings import Settings
from frostagent.models.openai.endpoint import join_url
from frostagent.models.prices import KnownModels, read_known
from frostagent.text.masking import Mask
from frostagent.types.errors import ConfigError
from frostagent.types.messages import Usage
from frostagent.types.ports import Clock, Ids

logger = logging.getLogger(__name__)

DEADLINE = 15.0  # seconds for each check
WITH_IMAGE = 5  # checks' time: until a OneBot server comes, and until QQ confirms the picture


TOO_SLOW: Final = Phrase("过了 {seconds} 秒还没查完", "was not finished after {seconds} s")
SEE_WHAT_IT_WAITS_FOR: Final = Phrase(
    "看看它在等什么：磁盘、域名解析，还是网络",
    "Find out what it waits for: the disk, a name, or the network",
)
CHECK_BROKE: Final = Phrase(
    "检查本身出错了（{kind}：{why}）", "the check itself failed ({kind}: {why})"
)
REPORT_THIS: Final = Phrase("请反馈给开发者", "Please report this")
CATALOGUE.register(__name__, globals())


@dataclass(frozen=True, slots=True)
class Probe:
    """A probe that makes this many `checks` one after the other, each with its deadline."""

    name: str
    look: Callable[[], Awaitable[Iterable[Check]]]
    checks: int = 1


async def diagnose(
    *,
    environ: Mapping[str, str],
    env_file: Path | None,
    clock: Clock,
    ids: Ids,
    send_image: bool = False,
) -> list[Check]:
    """All checks in a fixed order; with unusable settings, only their problems. `send_image` also
    sends a picture on QQ; in reverse mode this waits for the OneBot server to connect.
    """
    settings, told = check_settings(environ=environ, env_file=env_file)
    if settings is None:
        return told
    web = HttpxWeb(
        clock=clock,
        user_agent=user_agent(settings.tools_contact),
        base_urls=search_hosts(settings),
    )
    try:
        private = Probe(
            "privacy", partial(asyncio.to_thread, check_privacy, settings, env_file=env_file)
        )
        found = await run_probes(
            [private, *probes(settings, web=web, clock=clock, ids=ids, send_image=send_image)]
        )
    finally:
        await web.aclose()
    mask = Mask(all_secrets(settings, environ))
    return [masked(check, mask) for check in (*told, *found)]


def probes(
    settings: Settings,
    *,
    web: HttpxWeb,
    clock: Clock,
    ids: Ids,
    send_image: bool = False,
    charge: Charge = free,
) -> list[Probe]:
    """The probes that apply with these settings; `charge` receives the usage of models."""
    if settings.has_broker and settings.bot_role == "gateway":
        return [
            Probe("broker", partial(check_cluster, settings, clock=clock)),
            *_of_sockets(settings, clock, ids, send_image=send_image),
        ]
    found = [
        Probe("data folder", partial(asyncio.to_thread, check_folders, settings)),
        Probe("store", partial(asyncio.to_thread, check_store, settings)),
        Probe("limits", partial(asyncio.to_thread, check_limits, settings)),
        Probe("clock", partial(check_clock, settings, clock=clock)),
        Probe("model", partial(check_main_model, settings, clock=clock, charge=charge), checks=2),
        Probe("fallback", partial(check_fallbacks, settings, clock=clock, charge=charge)),
        Probe("coder", partial(check_coder, settings, clock=clock, charge=charge)),
        Probe("vision", partial(check_vision, settings, clock=clock, charge=charge)),
        Probe(
            "weather",
            partial(check_weather, web, keys=weather_keys(settings), now=clock.now()),
        ),
        Probe("search", partial(check_search, settings, web)),
        Probe("versions", partial(check_versions, web)),
        Probe("documents", partial(asyncio.to_thread, check_documents)),
        Probe("games", partial(asyncio.to_thread, check_games, settings, clock=clock)),
        Probe("tools", partial(asyncio.to_thread, check_tools, settings)),
    ]
    if settings.mcp_file is not None:
        found.append(Probe("mcp", partial(check_servers, settings)))
    if settings.media_url:
        found.append(Probe("media url", partial(check_media_url, settings)))
    if settings.has_broker:
        found.append(Probe("broker", partial(check_cluster, settings, clock=clock)))
    if settings.has_broker and settings.bot_role == "worker":
        return found
    return [*found, *_of_sockets(settings, clock, ids, send_image=send_image)]


def _of_sockets(settings: Settings, clock: Clock, ids: Ids, *, send_image: bool) -> list[Probe]:
    """The probes of a process that talks to OneBot servers."""
    found = list[Probe]()
    match settings.onebot_mode:
        case "forward":
            onebot = partial(check_forward, settings, clock=clock, ids=ids, send_image=send_image)
            found += [
                Probe("ports", partial(check_ports, settings)),
                Probe("onebot", onebot, checks=WITH_IMAGE if send_image else 1),
            ]
        case "reverse" if send_image:
            found.append(
                Probe(
                    "onebot",
                    partial(check_reverse, settings, clock=clock, ids=ids),
                    checks=WITH_IMAGE,
                )
            )
        case "reverse" if settings.has_broker:
            elsewhere = partial(online_anywhere, settings, clock=clock)
            found.append(Probe("ports", partial(check_ports, settings, elsewhere=elsewhere)))
        case "reverse":
            found.append(Probe("ports", partial(check_ports, settings)))
    return found


async def run_probes(things: Iterable[Probe], *, deadline: float = DEADLINE) -> list[Check]:
    """Run the probes concurrently; returns their checks in the order of the probes. `deadline` is
    in seconds.
    """
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(_look(probe, deadline * probe.checks)) for probe in things]
    return [check for task in tasks for check in task.result()]


async def _look(probe: Probe, seconds: float) -> list[Check]:
    try:
        async with asyncio.timeout(seconds):
            return list(await probe.look())
    except TimeoutError:
        return [
            failure(
                probe.name,
                TOO_SLOW,
                SEE_WHAT_IT_WAITS_FOR,
                seconds=f"{seconds:g}",
            )
        ]
    except Exception as error:
        logger.debug("a check broke", exc_info=True)
        return [
            failure(
                probe.name,
                CHECK_BROKE,
                REPORT_THIS,
                kind=type(error).__name__,
                why=error,
            )
        ]


# --- within a running bot -------------------------------------------------------------------------


NOT_INSIDE = frozenset({"ports", "tools"})
"""Checks that a running bot leaves out: it holds its ports itself, and importing its tools again
would have side effects.
"""


async def check_running_bot(
    settings: Settings,
    *,
    env_file: Path | None,
    clock: Clock,
    ids: Ids,
    charge: Callable[[str, Usage], None],
) -> tuple[Finding, ...]:
    """The findings with the bot's own settings, in the order of the command, within half a
    minute.
    """
    known, told = _prices(settings)

    def priced(endpoint: Endpoint, usage: Usage) -> None:
        price = known.price(endpoint.model, join_url(endpoint.base_url).host or "")
        charge(endpoint.model, usage if price is None else replace(usage, cost=price.of(usage)))

    web = HttpxWeb(
        clock=clock,
        user_agent=user_agent(settings.tools_contact),
        base_urls=search_hosts(settings),
    )
    try:
        privacy = partial(asyncio.to_thread, check_privacy, settings, env_file=env_file)
        things = probes(settings, web=web, clock=clock, ids=ids, charge=priced)
        found = await run_probes(
            [Probe("privacy", privacy), *(one for one in things if one.name not in NOT_INSIDE)]
        )
    finally:
        await web.aclose()
    return tuple(
        Finding(
            one.name,
            str(one.outcome),
            str(one.said),
            str(one.fix),
            said_zh=one.said.zh,
            fix_zh=one.fix.zh,
        )
        for one in (*check_trust(settings), *told, *found)
    )


def _prices(settings: Settings) -> tuple[KnownModels, list[Check]]:
    """The prices of requests, and the problems of the operator's file if it has changed since."""
    try:
        return read_known(settings.llm_prices), []
    except ConfigError as error:
        return read_known(), failures("prices", error.problems)
