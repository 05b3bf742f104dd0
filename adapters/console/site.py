"""All routes of the console, put together: loaded at the first request."""

from __future__ import annotations

from collections.abc import Callable

from aiohttp import web

from adapters.console.access import AccessPages
from adapters.console.logins import Logins
from adapters.console.rendering import Pages, go
from adapters.console.routes import Access, Route, Routes, Visit
from adapters.console.statics import Statics
from bot.domain.audit import Audited
from bot.domain.books import AuditBook
from bot.domain.ports import Clock


def routes_of(
    logins: Logins,
    book: AuditBook,
    *,
    note: Callable[[Audited], None],
    tell: Callable[[str, str], None],
    clock: Clock,
) -> Routes:
    """Every page and action there is."""
    pages = Pages()
    access = AccessPages(pages, logins, book, note=note, tell=tell, clock=clock)
    return Routes(
        (
            Route("GET", "/", begin, Access.LOGGED_IN),
            *Statics().routes,
            *access.routes,
        )
    )


async def begin(visit: Visit) -> web.Response:
    """The first page."""
    return go(visit, "/access")
