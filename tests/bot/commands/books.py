"""Books in a dictionary, for tests."""

from __future__ import annotations

from bot.core.conversation import Conversation
from bot.core.query_results import DaySum, PlaceSum, SpentSum, Story, UsageSum


class PaperBooks:
    """Fits `JournalQueries`; `away` ones cannot be read."""

    def __init__(
        self,
        *stories: tuple[str, Story],
        places: tuple[PlaceSum, ...] = (),
        days: tuple[DaySum, ...] = (),
        away: bool = False,
    ) -> None:
        self._stories = dict(stories)
        self._places = places
        self._away = away
        self._days = list(days)
        self.asked: list[tuple[float, Conversation | None, int | None]] = []

    async def usage(
        self,
        *,
        since: float,
        where: Conversation | None = None,
        asker: int | None = None,
        turn_id: str | None = None,
    ) -> UsageSum | None:
        self.asked.append((since, where, asker))
        return None if self._away else UsageSum(3, 1200, 900, 34, 0.0021)

    async def day(self, *, since: float, until: float, where: Conversation | None = None) -> DaySum | None:
        self.asked.append((since, where, None))
        return self._days.pop(0) if self._days else None

    async def places(self, *, since: float) -> tuple[PlaceSum, ...] | None:
        return None if self._away else self._places

    async def story(self, where: Conversation, message_id: str = "") -> Story | None:
        return None if self._away else self._stories.get(message_id, Story(asker=0))

    async def taken(self, *, since: float, until: float) -> tuple[SpentSum, ...] | None:
        return None if self._away else ()

    async def latest_payers(self, *, latest: int) -> tuple[tuple[str, Conversation, int], ...] | None:
        return None if self._away else ()
