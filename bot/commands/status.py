"""The current status: pending decisions of owners, and the free disk space."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from bot.commands.digest import Standing
from bot.core.console_views import BotStatus, State
from bot.core.other_bots import OtherBots


class StatusReader:
    """Reads the status of this bot, which has that `number`, or of all bots of the service.
    `count_pending` counts what waits for an owner here, by kind; `free_space` reads the free bytes
    of the journal's disk.
    """

    def __init__(
        self,
        *,
        count_pending: Callable[[], Mapping[str, int]],
        free_space: Callable[[], Awaitable[int | None]],
        others: OtherBots,
        number: int,
    ) -> None:
        self._count_pending = count_pending
        self._free_space = free_space
        self._others = others
        self._number = number

    async def here(self) -> Standing:
        """The status of this bot alone."""
        return Standing(self._count_pending(), await self._free_space())

    async def everywhere(self) -> Standing:
        """The status of all bots, with this bot's disk."""
        own = BotStatus(self._number, State(), waits=self._count_pending())
        found = await self._others.add_statuses(own)
        return Standing(found.waits, await self._free_space(), absent=found.state.absent)
