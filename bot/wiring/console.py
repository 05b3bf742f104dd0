"""The operator's console, off unless CONSOLE_PORT is set; pages are loaded at the first request."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from adapters.storage.store import SqlStore
from bot.domain.masking import Mask
from bot.domain.ports import Clock
from bot.wiring.service import Rooms
from config.settings import Settings

if TYPE_CHECKING:  # only an open console needs it
    from adapters.console.logins import Logins
    from adapters.console.origins import Origins
    from adapters.console.routes import Routes

logger = logging.getLogger(__name__)

Link = Callable[[], str]
"""Makes an address that lets in once."""

CLOSED = (
    "there is no console, though CONSOLE_PORT is set: CONSOLE_TOKEN is not. `frostagent setup` "
    "makes one, and so does openssl rand -hex 16"
)


@asynccontextmanager
async def open_console(
    settings: Settings, *, rooms: Rooms, journal: SqlStore, mask: Mask, clock: Clock
) -> AsyncIterator[Link | None]:
    """Listen while the block runs; what makes links, None where there is no console."""
    token = settings.console_token.get_secret_value()
    if not settings.console_port or not token:
        if settings.console_port:
            logger.warning(CLOSED)
        yield None
        return

    from adapters.console.server import Console

    def load(logins: Logins, _origins: Origins) -> Routes:
        from adapters.console.site import routes_of

        book, tell = journal.books, rooms.owner.tell
        return routes_of(logins, book, note=rooms.on.store.put, tell=tell, clock=clock)

    async with Console(
        host=settings.console_host,
        port=settings.console_port,
        token=token,
        origin=settings.console_origin,
        mask=mask,
        clock=clock,
        load=load,
    ) as console:
        yield console.link
