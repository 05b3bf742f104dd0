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

from cachetools import LRUCache
from rapidfuzz import fuzz

from bot.domain.events import Conversation

WAKES = 6  # of one sender
WITHIN = 180.0  # seconds for all of them
FAST = 4.0  # seconds after a message of ours: people read it first
ALIKE = 90.0  # percent of one text in the one before
LONGEST = 400  # characters that are compared
HELD = 600.0  # seconds somebody is observed only
MAX_SENDERS = 5000


class Loop(Enum):
    """The state of one who wakes us: free to, held from now on, or still held."""

    NONE = "none"
    BEGINS = "begins"
    HOLDS = "holds"


@dataclass(slots=True)
class _Sender:
    wakes: deque[float] = field(default_factory=lambda: deque(maxlen=WAKES))
    text: str = ""
    latest: float = -math.inf
    until: float = -math.inf


class Loops:
    """Watches who wakes us, in each conversation for itself."""

    def __init__(self) -> None:
        self._senders: LRUCache[tuple[Conversation, int], _Sender] = LRUCache(MAX_SENDERS)

    def take(
        self, where: Conversation, sender: int, text: str, *, spoke: float, now: float
    ) -> Loop:
        """A wake of this sender; we last `spoke` there at that time, -inf for never."""
        one = self._senders.setdefault((where, sender), _Sender())
        if now < one.until:
            return Loop.HOLDS
        short = text.strip().casefold()[:LONGEST]
        is_alike = bool(short) and fuzz.ratio(short, one.text) >= ALIKE
        is_answer = one.latest <= spoke  # else he has not read anything of ours since
        one.text, one.latest = short, now
        if is_alike or (is_answer and now - spoke <= FAST):
            one.wakes.append(now)
        elif is_answer:
            one.wakes.clear()
        if len(one.wakes) < WAKES or now - one.wakes[0] > WITHIN:
            return Loop.NONE
        one.wakes.clear()
        one.until = now + HELD
        return Loop.BEGINS
