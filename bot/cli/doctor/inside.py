"""The doctor within a bot that runs, by the settings that it has: without its ports, which it holds
itself, and without its tools, whose files would be run once more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from adapters.fetching.client import HttpxWeb
from adapters.openai.endpoint import join_url
from bot.cli.doctor.checks import Check, wrong_settings
from bot.cli.doctor.configuration import check_trust
from bot.cli.doctor.privacy import check_privacy
from bot.cli.doctor.run import Probe, examine, probes
from bot.domain.console_views import Finding
from bot.domain.errors import ConfigError
from bot.domain.model_messages import Usage
from bot.domain.ports import Clock, Ids
from bot.policy.prices import KnownModels, read_known
from bot.wiring.fetching import user_agent
from config.endpoints import Endpoint
from config.settings import Settings

NOT_HERE = frozenset({"ports", "tools"})


async def look_again(
    settings: Settings,
    *,
    env_file: Path | None,
    clock: Clock,
    ids: Ids,
    charge: Callable[[str, Usage], None],
) -> tuple[Finding, ...]:
    """Everything there is to say, in the order of the command. Takes half a minute at most."""
    known, told = _prices(settings)

    def priced(endpoint: Endpoint, usage: Usage) -> None:
        price = known.price(endpoint.model, join_url(endpoint.base_url).host or "")
        charge(endpoint.model, usage if price is None else replace(usage, cost=price.of(usage)))

    web = HttpxWeb(clock=clock, user_agent=user_agent(settings), base_urls=settings.tools_mirrors)
    try:
        privacy = partial(asyncio.to_thread, check_privacy, settings, env_file=env_file)
        things = probes(settings, web=web, clock=clock, ids=ids, charge=priced)
        found = await examine(
            [Probe("privacy", privacy), *(one for one in things if one.name not in NOT_HERE)]
        )
    finally:
        await web.aclose()
    return tuple(
        Finding(
            one.check,
            str(one.verdict),
            str(one.said),
            str(one.mend),
            said_zh=one.said.zh,
            mend_zh=one.mend.zh,
        )
        for one in (*check_trust(settings), *told, *found)
    )


def _prices(settings: Settings) -> tuple[KnownModels, list[Check]]:
    """The prices of requests, and what is wrong with the operator's file if it changed since."""
    try:
        return read_known(settings.llm_prices), []
    except ConfigError as error:
        return read_known(), wrong_settings("prices", error.problems)
