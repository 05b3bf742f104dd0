"""Counts of what a port did today, for the console; in memory, so a restart begins anew."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from bot.core.calendar_days import midnight
from bot.core.language import text_of
from frostagent.types.ports import Clock


class Tally(Struct, frozen=True):
    """Since midnight: how often something was done, and how often an earlier result was used
    instead. `error` is the latest failure of any day, `failed_at` its moment in seconds since 1970.
    """

    done: int = 0
    reused: int = 0
    error: str = ""
    failed_at: float = 0.0


class DayTally:
    """Counts until the next midnight, then from zero."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._tally = Tally()
        self._ends = 0.0

    def read(self) -> Tally:
        """The counts of this day."""
        now = self._clock.now()
        if now >= self._ends:
            self._tally = replace(self._tally, done=0, reused=0)
            self._ends = midnight(now, later=1)
        return self._tally

    def count(self, *, reused: bool = False) -> None:
        tally = self.read()
        if reused:
            self._tally = replace(tally, reused=tally.reused + 1)
        else:
            self._tally = replace(tally, done=tally.done + 1)

    def fail(self, error: Exception) -> None:
        """Keep this failure as the latest."""
        self._tally = replace(self.read(), error=text_of(error), failed_at=self._clock.now())
