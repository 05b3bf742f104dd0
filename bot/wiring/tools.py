"""The tools, put together from the settings: which there are, what they can use, and who follows
their runs.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import tools
from adapters.traces.run_log import RunLog
from adapters.traces.spans import SpanObserver
from bot.domain.group_admin import Chair, Topic
from bot.domain.masking import Mask
from bot.domain.memories import Notebook
from bot.domain.ports import ChatLog, Clock, Looking, Media, Speaker, Subagents, TurnFollower, Web
from bot.domain.tool import Tool
from bot.engine.toolset import Toolset
from bot.wiring.discovery import (
    Discovered,
    FoundTools,
    PackagedTools,
    ToolFolder,
    ToolSource,
    discover,
)
from config.secrets import secrets_of
from config.settings import KNOWN, Settings
from tools import _group
from tools.get_game_version.games import Games
from tools.get_weather.requests import WeatherKeys
from tools.get_weather.sources import WeatherSources

logger = logging.getLogger(__name__)

PORTS: frozenset[type] = frozenset(
    {
        Chair,
        ChatLog,
        Games,
        Looking,
        Media,
        Notebook,
        Speaker,
        Subagents,
        Topic,
        WeatherSources,
        Web,
    }
)
"""The ports a run of the service can have: the last two in a group, with TOOLS_GROUP."""


def find_tools(settings: Settings) -> Discovered:
    """The bot's own tools, and the operator's in TOOLS_DIR. Imports them."""
    sources: list[ToolSource] = [PackagedTools(tools)]
    if settings.tools_group:
        sources.append(GroupTools())
    if settings.tools_dir is not None:
        sources.append(ToolFolder(settings.tools_dir))
    return discover(*sources)


class GroupTools:
    """Those that do things in a group: there are none unless the operator wants them."""

    def find(self) -> FoundTools:
        """All of them."""
        return FoundTools(tuple((tool, "tools/_group.py") for tool in _group.ALL))


def build_toolset(settings: Settings, found: Iterable[Tool], *, clock: Clock) -> Toolset:
    """The tools under the operator's word on them; what that names and is not there is told to the
    log.
    """
    toolset = Toolset(
        found,
        clock=clock,
        mask=Mask(secrets_of(settings)),
        deny=settings.tools_deny,
        approve=settings.tools_approve,
        configured=[name for name in KNOWN if getattr(settings, name.lower())],
    )
    toolset.beware()
    for name in strangers(settings, toolset):
        logger.warning(
            "TOOLS_DENY, TOOLS_APPROVE or TOOLS_AUDIENCE names %s, but there is no such tool", name
        )
    return toolset


def strangers(settings: Settings, toolset: Toolset) -> list[str]:
    """The names in TOOLS_DENY, TOOLS_APPROVE and TOOLS_AUDIENCE that no tool has."""
    own = {name for name in settings.tools_audience if toolset.get(name) is None}
    return sorted(own.union(toolset.unknown_names()))


def build_ports(
    settings: Settings,
    *,
    subagents: Subagents | None,
    media: Media,
    web: Web,
    games: Games,
    clock: Clock,
) -> dict[type, object]:
    """All that tools can use in any run, whatever it is asked. A run has a `Speaker` besides.

    No subagents where there is no model for them.
    """
    asked: dict[type, object] = {} if subagents is None else {Subagents: subagents}
    return {
        **asked,
        Media: media,
        Web: web,
        Games: games,
        WeatherSources: WeatherSources(
            web=web, clock=clock, keys=WeatherKeys.from_settings(settings)
        ),
    }


@contextmanager
def following(
    settings: Settings, mask: Callable[[str], str], clock: Clock, aside: Discovered | None = None
) -> Iterator[list[TurnFollower]]:
    """Who follows turns while the block runs: spans always (nothing without an SDK), and
    LOG_RUNS; nobody those of a service that is `aside` of another.
    """
    if aside is not None:
        yield []
        return
    spans = SpanObserver(clock=clock)
    if settings.log_runs is None:
        yield [spans]
        return
    log = RunLog(settings.log_runs, clock=clock, mask=mask, content=settings.log_content)
    with log.writing():
        yield [spans, log]
