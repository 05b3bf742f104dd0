"""How often somebody, or a group, may wake the bot, and how who is too fast hears of it. Pure:
times are given, in seconds on any steady scale.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field
from enum import Enum, auto

from bot.domain.traits import Rate


@dataclass(slots=True)
class Recent:
    """The latest wakes of one person or group."""

    _at: deque[float] = field(default_factory=deque)

    def has_room(self, rate: Rate, now: float) -> bool:
        """Whether one more is within the rate."""
        while self._at and self._at[0] <= now - rate.seconds:
            self._at.popleft()
        return len(self._at) < rate.calls

    def count(self, now: float) -> None:
        """There is one more."""
        self._at.append(now)

    def recall(self, at: float) -> None:
        """There was one more, which may be older than others."""
        self._at = deque(sorted((*self._at, at)))


class Notice(Enum):
    """The way somebody hears that he is not answered."""

    LINE = auto()
    SIGN = auto()
    NOTHING = auto()


@dataclass(slots=True)
class Courtesy:
    """Each person hears of a limit: a line, then so many signs at most, until that is long
    ago.
    """

    signs: float = math.inf
    _until: float = -math.inf
    _heard: int = 0

    def next(self, now: float, *, until: float) -> Notice:
        """The next notice; where it is a line, all begins anew at `until`."""
        if now >= self._until:
            self._until, self._heard = until, 0
            return Notice.LINE
        self._heard += 1
        return Notice.SIGN if self._heard <= self.signs else Notice.NOTHING
