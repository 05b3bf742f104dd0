"""How one conversation is written down for a model: in which words, and who has which number in
it. Pure.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, tzinfo

from msgspec import Struct

from bot.prompt.wording import Wording
from bot.prompt.wording_zh import ZH


class View(Struct, frozen=True):
    """`number` gives a person's number from the account; without it people have names alone.

    Times are those of the `zone`, of this machine where there is none.
    """

    words: Wording = ZH
    number: Callable[[int], int] | None = None
    zone: tzinfo | None = None

    def clock(self, time: float) -> str:
        """The time of day, `14:02`; empty for a moment that cannot be."""
        return f"{moment.hour:02}:{moment.minute:02}" if (moment := self._moment(time)) else ""

    def day(self, time: float) -> str:
        """The date, `2026-11-22`; empty for a moment that cannot be."""
        return str(moment.date()) if (moment := self._moment(time)) else ""

    def date(self, time: float) -> str:
        """The date with its weekday; empty for a moment that cannot be."""
        moment = self._moment(time)
        return f"{moment.date()} {self.words.weekdays[moment.weekday()]}" if moment else ""

    def _moment(self, time: float) -> datetime | None:
        """Servers have sent 0 and milliseconds."""
        try:
            return datetime.fromtimestamp(time, self.zone) if time > 0 else None
        except (ValueError, OverflowError, OSError):
            return None
