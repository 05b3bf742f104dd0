"""The owners' line of the day: how yesterday went, once a day at a time of their choosing."""

from __future__ import annotations

import time

from bot.commands.digest import YESTERDAY, Stands, told_of
from bot.domain.books import Books, Choices, DaySum
from bot.domain.journal import PlaceSet
from bot.domain.ports import Clock, Store
from bot.domain.tongue import Tongue
from bot.memory.kept_settings import NOWHERE
from bot.policy.days import at_time, midnight
from bot.speaking.owner_alerts import Owner

SETTING = "digest"
LOOK = 60.0  # seconds between two looks at the clock


class Daily:
    """Tells it once, over restarts; where the process was down at that time, when it is back on the
    same day. A day on which nothing happened is not told.

    `at` is in seconds after midnight by the wall clock of TZ, None for never.
    """

    def __init__(
        self,
        *,
        at: float | None,
        tongue: Tongue,
        books: Books,
        stands: Stands,
        choices: Choices,
        store: Store,
        owner: Owner,
        clock: Clock,
    ) -> None:
        self._at = at
        self._tongue = tongue
        self._books = books
        self._stands = stands
        self._choices = choices
        self._store = store
        self._owner = owner
        self._clock = clock
        self._done = ""  # the day that was told, or is not worth it

    async def run(self) -> None:
        """Tell it whenever it is time, until cancelled."""
        while self._at is not None:
            now = self._clock.now()
            due = at_time(now, self._at)
            today = _date(now)
            if self._done != today and now >= due and await self._tell(now, today):
                self._done = today
            wait = due - self._clock.now()
            await self._clock.sleep(min(LOOK, wait) if wait > 0 else LOOK)

    async def _tell(self, now: float, today: str) -> bool:
        """Whether it is told, or need not be; False: try again. It is written down before it is
        said: told twice would be worse than not at all.
        """
        if not self._owner.is_reachable:
            return False
        told = await self._choices.settings(SETTING)
        if told is None:
            return False
        # A clock that was put back over midnight finds the day after told already.
        if today <= told.get(NOWHERE, "") <= _date(midnight(now, later=1)):
            return True
        ends = midnight(now)
        begins, before = midnight(now, later=-1), midnight(now, later=-2)
        day = await self._books.day(since=begins, until=ends)
        other = await self._books.day(since=before, until=begins)
        if day is None or other is None:
            return False
        if day == DaySum():
            return True
        words = told_of(day, other, YESTERDAY, self._tongue.either, await self._stands())
        if not await self._store.commit(PlaceSet(NOWHERE, SETTING, today)):
            return False
        self._owner.post(words)
        return True


def _date(at: float) -> str:
    return time.strftime("%Y-%m-%d", time.localtime(at))
