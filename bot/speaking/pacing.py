"""How fast the bot may speak: short bursts at once, then at a steady rate with jitter; for each key
on its own.

QQ freezes accounts that send fast and evenly. A virtual schedule (GCRA) says when the next message
is due.
"""

from __future__ import annotations

from collections.abc import Hashable

from bot.domain.ports import Clock, Ids

# More keys are looked through: those that may burst again are as good as unknown. A bounded cache
# would forget by age alone, and let somebody burst who has just done so.
MAX_KEYS = 10_000

APART = 5.0  # seconds between two equal texts in one place


class Pace:
    """`rate` messages a second on average for each key, the first `burst` of them at once; rate 0
    is no limit.
    """

    def __init__(self, *, rate: float, burst: int, clock: Clock, ids: Ids) -> None:
        self._interval = 1 / rate if rate > 0 else 0.0
        self._slack = self._interval * max(burst - 1, 0)
        self._clock = clock
        self._ids = ids
        self._due: dict[Hashable, float] = {}
        self._full = MAX_KEYS

    def delay(self, key: Hashable) -> float:
        """How many seconds to wait before the next message of this key; it is counted as sent."""
        if not self._interval:
            return 0.0
        now = self._clock.monotonic()
        due = max(self._due.get(key, now), now)
        self._due[key] = due + self._interval
        if len(self._due) > self._full:
            self._due = {key: due for key, due in self._due.items() if due > now}
            self._full = max(MAX_KEYS, 2 * len(self._due))
        wait = due - now - self._slack
        return wait * (1 + self._ids.jitter() / 2) if wait > 0 else 0.0


class Echoes:
    """Keeps equal texts to one place `apart` seconds from each other: a row of the same words is
    what QQ takes for a machine.
    """

    def __init__(self, *, apart: float, clock: Clock) -> None:
        self._apart = apart
        self._clock = clock
        self._due: dict[tuple[Hashable, str], float] = {}

    def holds(self, key: Hashable, text: str) -> bool:
        """Whether this text would have to wait."""
        return self._due.get((key, text), 0.0) > self._clock.monotonic()

    def delay(self, key: Hashable, text: str) -> float:
        """How many seconds to wait before this text; it is counted as said."""
        if not self._apart or not text.strip():
            return 0.0
        now = self._clock.monotonic()
        self._due = {said: due for said, due in self._due.items() if due > now}
        due = self._due.get((key, text), now)
        self._due[key, text] = due + self._apart
        return due - now
