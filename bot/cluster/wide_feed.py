"""News of all bots of a cluster, for whoever looks at the console of one: its own as it
happens, the others' from the journal, once a second while somebody watches.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from typing import Final, NoReturn

from bot.core.console_views import ConsoleQueries, News, TurnQuery, TurnRow
from bot.memory.newest import Newest
from frostagent.types.conversation import Conversation
from frostagent.types.ports import Clock

EVERY: Final = 1.0  # seconds between two looks
WATCHED: Final = 15.0  # seconds for which somebody watches who has just asked


class WideFeed:
    """Fits `Feed`. What is `ours` comes from `newest` itself."""

    def __init__(
        self,
        newest: Newest,
        showing: ConsoleQueries,
        *,
        ours: Callable[[Conversation], bool],
        clock: Clock,
    ) -> None:
        self._newest = newest
        self._showing = showing
        self._ours = ours
        self._clock = clock
        self._asked = -math.inf
        self._since = 0.0
        self._known: dict[str, str] = {}

    @property
    def number(self) -> int:
        """That of the latest."""
        self._watch()
        return self._newest.number

    async def after(self, number: int, *, within: float) -> tuple[News, ...]:
        """All that is newer than that, waited for so many seconds; nothing where nothing came."""
        self._watch()
        return await self._newest.after(number, within=within)

    async def run(self, then: Callable[[], Awaitable[object]]) -> NoReturn:
        """Look, for ever, and each time do something `then`."""
        while True:
            await self._clock.sleep(EVERY)
            if self._is_watched:
                await self._look()
                await then()

    @property
    def _is_watched(self) -> bool:
        return self._clock.monotonic() - self._asked <= WATCHED

    def _watch(self) -> None:
        if not self._is_watched:  # what was before is on the page that is just made
            self._since, self._known = self._clock.now(), {}
        self._asked = self._clock.monotonic()

    async def _look(self) -> None:
        if (found := await self._showing.rows(TurnQuery())) is None:
            return
        known = {_name(row): row.outcome for row in found.rows if not self._ours(row.where)}
        for row in found.rows:
            name = _name(row)
            if name in known and self._is_new(row, self._known.get(name)):
                self._newest.add(name)
        self._known = known

    def _is_new(self, row: TurnRow, before: str | None) -> bool:
        """Whether it began or ended since somebody looked."""
        if before is not None:
            return row.outcome != before
        return row.at + (row.seconds or 0.0) >= self._since


def _name(row: TurnRow) -> str:
    return row.turn_id or row.message_id
