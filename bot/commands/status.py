"""The current status: what waits for an owner's decision, and the free disk space."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping

from bot.commands.digest import Standing
from bot.core.cluster_queries import ClusterClient, PartitionStatus, StatusQuery


class StatusReader:
    """Reads the status of this bot, or of all bots of its cluster. `count_pending` counts what
    waits for an owner here, by kind; `free_space` reads the free bytes of the journal's disk. A
    bot alone has no `cluster`.
    """

    def __init__(
        self,
        *,
        count_pending: Callable[[], Mapping[str, int]],
        free_space: Callable[[], Awaitable[int | None]],
        cluster: ClusterClient | None,
    ) -> None:
        self._count_pending = count_pending
        self._free_space = free_space
        self._cluster = cluster

    async def here(self) -> Standing:
        """The status of this bot alone."""
        return Standing(self._count_pending(), await self._free_space())

    async def everywhere(self) -> Standing:
        """The status of all bots; the disk is that of this one."""
        if self._cluster is None:
            return await self.here()
        waiting = Counter(self._count_pending())
        # While a partition changes hands two bots may answer for it.
        replies = await self._cluster.ask_all(StatusQuery())
        found = {one.partition: one.waits for one in replies if isinstance(one, PartitionStatus)}
        for waits in found.values():
            waiting.update(waits)
        absent = self._cluster.count - len(found)
        return Standing(waiting, await self._free_space(), absent=absent)
