"""Tasks that are done once for all accounts, also where several bots of a cluster have them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from bot.domain.masking import Mask
from bot.domain.ports import Store
from bot.wiring.console import Link, open_console
from bot.wiring.daily import telling_daily
from bot.wiring.seen import SeenBot
from config.settings import Settings

if TYPE_CHECKING:  # only what is tried out needs it
    from bot.wiring.simulated import Opens


@asynccontextmanager
async def once_for_all(
    settings: Settings, seen: SeenBot, store: Store, mask: Mask, opening: Opens
) -> AsyncIterator[Link | None]:
    """The console, of which this makes links and which opens what is tried out by `opening`, and
    the owners' line of the day while the block runs; where another share is the first, only what
    is looked out for in each.
    """
    async with telling_daily(
        settings, seen.rooms, seen.spending, seen.journal, store, seen.others, seen.clock
    ):
        if not seen.journal.share.is_first:
            yield None
            return
        async with open_console(settings, seen, mask=mask, opening=opening) as link:
            yield link
