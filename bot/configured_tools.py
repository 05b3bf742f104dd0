"""The tools as the settings allow them, and the ports they can use."""

from __future__ import annotations

import logging
from collections.abc import Iterable

import tools
from bot.core.group_admin import Chair, Topic
from bot.core.jobs import Reminders, Subscriptions
from bot.core.memories import Notebook
from bot.core.ports import ChatLog, Looking, Web
from bot.mcp_servers import belongs_to_server
from bot.runtime.tool_discovery import Discovered, FoundTools, PackagedTools, ToolFolder, discover
from config.mcp_servers import read_servers
from config.secrets import secrets_of
from config.settings import KNOWN, Settings
from frostagent.engine.toolset import Toolset
from frostagent.text.masking import Mask
from frostagent.types.ports import Clock, Media, Speaker, Subagents
from frostagent.types.tools import Tool
from tools import _group
from tools.get_game_version.games import Games
from tools.get_weather.requests import WeatherKeys
from tools.get_weather.sources import WeatherSources

logger = logging.getLogger(__name__)

TOOL_PORTS: frozenset[type] = frozenset(
    {
        Chair,
        ChatLog,
        Games,
        Looking,
        Media,
        Notebook,
        Reminders,
        Speaker,
        Subagents,
        Subscriptions,
        Topic,
        WeatherSources,
        Web,
    }
)
"""The ports that a run of the service can have: `Chair` and `Topic` in a group, with TOOLS_GROUP;
`Reminders` and `Subscriptions` if BOT_REMINDERS is on and somebody there has wanted one.
"""


class GroupTools:
    """The tools for group administration, with TOOLS_GROUP only."""

    def find(self) -> FoundTools:
        return FoundTools(tuple((tool, "tools/_group.py") for tool in _group.ALL))


def find_tools(settings: Settings) -> Discovered:
    """Import the packaged tools, and the operator's in TOOLS_DIR."""
    return discover(
        PackagedTools(tools),
        *([GroupTools()] if settings.tools_group else []),
        *([] if settings.tools_dir is None else [ToolFolder(settings.tools_dir)]),
    )


def build_toolset(settings: Settings, found: Iterable[Tool], *, clock: Clock) -> Toolset:
    """Apply the settings to the tools; names in the settings that no tool has are logged."""
    toolset = Toolset(
        found,
        clock=clock,
        mask=Mask(secrets_of(settings)),
        deny=settings.tools_deny,
        approve=settings.tools_approve,
        configured=[name for name in KNOWN if getattr(settings, name.lower())],
    )
    toolset.beware()
    for name in unknown_tools(settings, toolset):
        logger.warning(
            "TOOLS_DENY, TOOLS_APPROVE or TOOLS_AUDIENCE names %s, but there is no such tool", name
        )
    return toolset


def unknown_tools(settings: Settings, toolset: Toolset) -> list[str]:
    """The names in TOOLS_DENY, TOOLS_APPROVE and TOOLS_AUDIENCE that no tool has."""
    own = {name for name in settings.tools_audience if toolset.get(name) is None}
    servers, _ = read_servers(settings.mcp_file, settings.mcp_keys)
    unknown = own.union(toolset.unknown_names())
    return sorted(name for name in unknown if not belongs_to_server(name, servers))


def build_ports(
    settings: Settings,
    *,
    subagents: Subagents | None,
    media: Media,
    web: Web,
    games: Games,
    clock: Clock,
) -> dict[type, object]:
    """The ports of any run; without a model for subagents there is no port for them."""
    ports: dict[type, object] = {
        Media: media,
        Web: web,
        Games: games,
        WeatherSources: WeatherSources(web=web, clock=clock, keys=weather_keys(settings)),
    }
    if subagents is not None:
        ports[Subagents] = subagents
    return ports


def weather_keys(settings: Settings) -> WeatherKeys:
    return WeatherKeys(
        qweather_host=settings.qweather_host,
        qweather_key=settings.qweather_key.get_secret_value(),
        qweather_project=settings.qweather_jwt_project,
        qweather_key_id=settings.qweather_jwt_key_id,
        qweather_private_key=settings.qweather_jwt_private_key.get_secret_value(),
        amap_key=settings.amap_key.get_secret_value(),
        contact=bool(settings.tools_contact),
    )
