"""Speaking up unasked: whether a line that is said to nobody wakes the bot. Pure: the draw and the
time are given, in seconds on any steady scale.
"""

from __future__ import annotations

from collections import deque

COOLDOWN = 120.0  # seconds between two of them in one group
A_DAY = 20  # in one group
DAY = 86_400.0


class Chances:
    """Takes a chance now and then, in one group, no more often than people bear."""

    def __init__(self) -> None:
        self._taken: deque[float] = deque(maxlen=A_DAY)

    def take(self, chance: float, *, draw: float, now: float) -> bool:
        """Whether to speak up; `chance` is from 0 to 1, `draw` in [0, 1)."""
        taken = self._taken
        if draw >= chance or (taken and now - taken[-1] < COOLDOWN):
            return False
        if len(taken) == A_DAY and now - taken[0] < DAY:
            return False
        taken.append(now)
        return True
