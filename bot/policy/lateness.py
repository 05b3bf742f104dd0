"""How late a message comes, though neither its server's clock nor ours need be right: by how quick
others came. Pure: times are given, ours in seconds on any steady scale.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

LATE = 60.0  # seconds behind the quickest: it tells nothing of how quick messages come,
LASTING = 600.0  # unless all have been as late for so long: then a clock was set
CREEP = 1e-4  # of the time that passes: two clocks go apart by less


@dataclass(slots=True)
class Lateness:
    """Of the messages of one account; `quickest` is our time less a message's own."""

    quickest: float = math.inf
    _heard: float = 0.0
    _late_since: float = math.inf

    def hear(self, time: float, now: float) -> None:
        """A message of that time, by its server's clock, has come."""
        behind = now - time
        self.quickest += CREEP * (now - self._heard)
        self._heard = now
        if behind < self.quickest + LATE:
            # One whose clock was ahead for a moment does not make all others late.
            believed = behind if self.quickest == math.inf else max(behind, self.quickest - LATE)
            self.quickest, self._late_since = min(believed, self.quickest), math.inf
        elif self._late_since == math.inf:
            self._late_since = now
        elif now - self._late_since > LASTING:
            self.quickest, self._late_since = behind, math.inf

    def least(self, time: float, now: float) -> float:
        """Seconds since a message of that time was said, at least: servers tell whole seconds."""
        return now - time - self.quickest - 1.0
