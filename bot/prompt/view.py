"""How one conversation is written down for a model: in which words, and who has which number in
it. Pure.
"""

from __future__ import annotations

import time as clock
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache

from msgspec import Struct

from bot.prompt.wording import Wording
from bot.prompt.wording_zh import ZH

MINUTE = 60.0  # seconds
LAST = (datetime.max.replace(tzinfo=UTC) - timedelta(days=1)).timestamp()  # in every zone


class View(Struct, frozen=True):
    """`number` gives a person's number from the account; without it people have names alone.

    Times are those of the `zone`, of this machine where there is none.
    """

    words: Wording = ZH
    number: Callable[[int], int] | None = None
    zone: tzinfo | None = None

    def clock(self, time: float) -> str:
        """The time of day, `14:02`; empty for a moment that cannot be."""
        return self._written(time)[1]

    def day(self, time: float) -> str:
        """The date, `2026-11-22`; empty for a moment that cannot be."""
        return self._written(time)[0]

    def date(self, time: float) -> str:
        """The date with its weekday; empty for a moment that cannot be."""
        day, _, weekday = self._written(time)
        return f"{day} {self.words.weekdays[weekday]}" if day else ""

    def _written(self, time: float) -> tuple[str, str, int]:
        return _written(_minute(time), self.zone, clock.timezone)


def _minute(time: float) -> int:
    """Its number since 1970; -1 for a moment that cannot be: servers have sent 0 and
    milliseconds.
    """
    return int(time / MINUTE) if 0 < time < LAST else -1


@lru_cache(maxsize=256)  # a prompt asks five times for the same one
def _written(minute: int, zone: tzinfo | None, _west: int) -> tuple[str, str, int]:
    """The date, the time of day, and the number of the weekday; empty for the minute -1.

    So many seconds west of Greenwich is this machine's zone, while that is not set anew.
    """
    if minute < 0:
        return "", "", 0
    moment = datetime.fromtimestamp(minute * MINUTE, zone)
    return str(moment.date()), f"{moment.hour:02}:{moment.minute:02}", moment.weekday()
