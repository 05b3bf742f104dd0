"""How long a connection may be silent before that is worth a question."""

from __future__ import annotations

from typing import Final

MISSED: Final = 3  # heartbeats
SHORTEST: Final = 5.0  # seconds; a server that beats every second may be busy for one
MOST_SLACK: Final = 64


class Patience:
    """Learns from the heartbeats of one connection; `seconds` is 0 while nothing says how often it
    beats.
    """

    def __init__(self) -> None:
        self._interval = 0.0
        self._slack = 1

    @property
    def seconds(self) -> float:
        """How long no heartbeat is nothing to wonder at."""
        return max(SHORTEST, MISSED * self._interval) * self._slack if self._interval else 0.0

    def beat(self, interval: float) -> bool:
        """Note a heartbeat that announces the next one after so many seconds; whether that says
        anything.
        """
        if interval > 0:
            self._interval = interval
        return interval > 0

    def missed(self) -> None:
        """It was silent for so long: if it lives, it beats slower than it says, and is not to be
        asked each time.
        """
        self._slack = min(2 * self._slack, MOST_SLACK)
