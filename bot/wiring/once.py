"""What is done once for all accounts, also where several bots of a cluster have them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bot.domain.masking import Mask
from bot.domain.ports import Store
from bot.domain.shares import Share
from bot.wiring.console import Link, Seen, open_console
from bot.wiring.daily import telling_daily
from config.settings import Settings


@asynccontextmanager
async def once_for_all(
    settings: Settings, share: Share, seen: Seen, store: Store, mask: Mask
) -> AsyncIterator[Link | None]:
    """The owners' line of the day and the console, of which this makes links, while the block runs;
    not where another share is the first.
    """
    if not share.is_first:
        yield None
        return
    async with (
        telling_daily(settings, seen.rooms, seen.journal, store, seen.clock),
        open_console(settings, seen, mask=mask) as link,
    ):
        yield link
