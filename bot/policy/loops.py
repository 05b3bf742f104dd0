"""Two that answer each other for ever: a bot that nobody knows for one, and us. Pure: the time is
given, in seconds on any steady scale.

Who answers us faster than people write, or says nearly the same again, is counted; who takes his
time once is a person.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field
from enum import Enum

from bot.policy.likeness import is_like

WITHIN = 180.0  # seconds for all that are too many
FAST = 4.0  # seconds after a message of ours: people read it first
ALIKE = 90.0  # percent of one text in the one before
LONGEST = 400  # characters that are compared
HELD = 600.0  # seconds somebody is observed only


class Loop(Enum):
    """The state of one who wakes us: free to, held from now on, or still held."""

    NONE = "none"
    BEGINS = "begins"
    HOLDS = "holds"


@dataclass(slots=True)
class Waker:
    """One who wakes us in one conversation."""

    _wakes: deque[float] = field(default_factory=deque)
    _text: str = ""
    _latest: float = -math.inf
    until: float = -math.inf

    def take(self, text: str, most: int, *, spoke: float, now: float) -> Loop:
        """A wake with these words, of which the last of so many at `most` is one too many; we last
        `spoke` there at that time, -inf for never.
        """
        if now < self.until:
            return Loop.HOLDS
        short = text.strip().casefold()[:LONGEST]
        is_alike = bool(short) and is_like(short, self._text, least=ALIKE)
        is_answer = self._latest <= spoke  # else he has not read anything of ours since
        self._text, self._latest = short, now
        if is_alike or (is_answer and now - spoke <= FAST):
            self._wakes.append(now)
        elif is_answer:
            self._wakes.clear()
        while self._wakes and now - self._wakes[0] > WITHIN:
            self._wakes.popleft()
        if len(self._wakes) < most:
            return Loop.NONE
        self.until = now + HELD
        return Loop.BEGINS
