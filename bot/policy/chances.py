"""Speaking up unasked: whether a line that is said to nobody wakes the bot. Pure: the draw and the
time are given, in seconds on any steady scale.
"""

from __future__ import annotations

from collections import deque

from cachetools import LRUCache

from bot.domain.events import Conversation

COOLDOWN = 120.0  # seconds between two of them in one group
A_DAY = 20  # in one group
DAY = 86_400.0
MAX_PLACES = 2000


class Chances:
    """Takes a chance now and then, in each group no more often than people bear. `chance` is that
    of one line, 0 to 1.
    """

    def __init__(self, chance: float) -> None:
        self._chance = chance
        self._taken: LRUCache[Conversation, deque[float]] = LRUCache(MAX_PLACES)

    def take(self, where: Conversation, *, draw: float, now: float) -> bool:
        """Whether to speak up; `draw` is in [0, 1)."""
        if draw >= self._chance:
            return False
        taken: deque[float] = self._taken.setdefault(where, deque(maxlen=A_DAY))
        if taken and now - taken[-1] < COOLDOWN:
            return False
        if len(taken) == A_DAY and now - taken[0] < DAY:
            return False
        taken.append(now)
        return True
