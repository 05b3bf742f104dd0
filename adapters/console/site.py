"""The list of all routes of the console. Loaded at the first request, as Jinja2 is."""

from __future__ import annotations

from adapters.console.access import AccessPages
from adapters.console.approvals import ApprovalPages
from adapters.console.chats import ChatPages
from adapters.console.costs import CostPages
from adapters.console.health import HealthPages
from adapters.console.live import LivePages
from adapters.console.logins import Logins
from adapters.console.personas import PersonaPages
from adapters.console.rendering import Pages, StaticFiles
from adapters.console.routes import Routes
from adapters.console.sources import Sources
from adapters.console.today import TodayPages
from adapters.console.tools import ToolPages
from adapters.console.trying import TryPages
from adapters.console.turns import TurnPages


def routes_of(logins: Logins, sources: Sources) -> Routes:
    """All pages and actions."""
    statics = StaticFiles()
    pages = Pages(mask=sources.mask, waiting=sources.waiting, statics=statics.path)
    live = LivePages(logins, sources)
    return Routes(
        (
            *statics.routes,
            *AccessPages(pages, logins, sources).routes,
            *TodayPages(pages, logins, sources).routes,
            *TurnPages(pages, sources).routes,
            *ApprovalPages(pages, logins, sources).routes,
            *ChatPages(pages, logins, sources).routes,
            *CostPages(pages, sources).routes,
            *ToolPages(pages, sources).routes,
            *PersonaPages(pages, logins, sources).routes,
            *HealthPages(pages, sources).routes,
            *live.routes,
            *TryPages(pages, sources, live).routes,
        ),
        refuse=pages.refuse,
    )
