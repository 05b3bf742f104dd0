"""The tools as the settings allow them, and the ports they can use."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from urllib.parse import urlsplit

import tools
from bot.core.group_admin import Chair, Topic
from bot.core.jobs import Reminders, Subscriptions
from bot.core.language import CATALOGUE, Bilingual, Phrase
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
from tools.read_page import read_page
from tools.read_page.pages import Pages
from tools.search_web import search_web
from tools.search_web.search import UNSET, SearchAccount, WebSearch

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
        Pages,
        Speaker,
        Subagents,
        Subscriptions,
        Topic,
        WeatherSources,
        Web,
        WebSearch,
    }
)
"""The ports that a run of the service can have: `Chair` and `Topic` in a group, with TOOLS_GROUP;
`Reminders` and `Subscriptions` if BOT_REMINDERS is on and somebody there has wanted one.
"""


class GroupTools:
    """The tools for group administration, with TOOLS_GROUP only."""

    def find(self) -> FoundTools:
        return FoundTools(tuple((tool, "tools/_group.py") for tool in _group.ALL))


WEB_TOOLS = frozenset({search_web.function, read_page.function})
READERS = ("pypdf", "selectolax")
"""What the extra `web` installs."""

NOT_INSTALLED = Phrase(
    "需要额外的库：.venv/bin/pip install -r requirements-web.txt，没有源码目录时用"
    " pip install 'frostagent[web]'，Docker 下在 .env 里设 EXTRAS=web",
    "needs libraries that are not installed: .venv/bin/pip install -r requirements-web.txt,"
    " without a checkout pip install 'frostagent[web]', with Docker EXTRAS=web in .env",
)
CATALOGUE.register(__name__, globals())


def find_tools(settings: Settings) -> Discovered:
    """Import the packaged tools, and the operator's in TOOLS_DIR."""
    return discover(
        PackagedTools(tools),
        *([GroupTools()] if settings.tools_group else []),
        *([] if settings.tools_dir is None else [ToolFolder(settings.tools_dir)]),
    )


def build_toolset(settings: Settings, found: Iterable[Tool], *, clock: Clock) -> Toolset:
    """Apply the settings to the tools; names in the settings that no tool has are logged."""
    lacks = lacking_tools(settings)
    toolset = Toolset(
        [_as_set_up(one, lacks) for one in found],
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


def lacking_tools(settings: Settings) -> dict[str, Bilingual]:
    """The bot's own tools that these settings do not turn on, by name, and what each lacks."""
    account = search_account(settings)
    lacks: dict[str, Bilingual] = {}
    if (lack := account.lacks) is not None:
        lacks[search_web.name] = lack
    if not has_web(settings):
        lacks[read_page.name] = UNSET.fill()
    elif not all(map(find_spec, READERS)):
        lacks[read_page.name] = NOT_INSTALLED.fill()
    return lacks


def has_web(settings: Settings) -> bool:
    """Whether the settings turn on searching, or reading alone."""
    account = search_account(settings)
    return account.is_set or account.kind == "none"


def _as_set_up(tool: Tool, lacks: Mapping[str, Bilingual]) -> Tool:
    """The tool, unavailable if the settings do not turn it on; an operator's of that name is."""
    lack = lacks.get(tool.name) if tool.function in WEB_TOOLS else None
    return tool if lack is None else tool.replace(available=lambda: lack)


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
    search: WebSearch,
    pages: Pages,
    clock: Clock,
) -> dict[type, object]:
    """The ports of any run; without a model for subagents there is no port for them."""
    ports: dict[type, object] = {
        Media: media,
        Web: web,
        Games: games,
        Pages: pages,
        WebSearch: search,
        WeatherSources: WeatherSources(web=web, clock=clock, keys=weather_keys(settings)),
    }
    if subagents is not None:
        ports[Subagents] = subagents
    return ports


def search_account(settings: Settings) -> SearchAccount:
    """The account at a search service among the settings."""
    return SearchAccount(
        kind=settings.search_kind,
        url=settings.search_url,
        key=settings.search_key.get_secret_value(),
    )


def search_hosts(settings: Settings) -> dict[str, str]:
    """The mirrors, and the search service as one of them: its address is the operator's word, so it
    may be private.
    """
    address = urlsplit(settings.search_url)
    own = {address.hostname: f"{address.scheme}://{address.netloc}"} if address.hostname else {}
    return settings.tools_mirrors | own


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
