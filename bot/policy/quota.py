"""How often a tool may be called, over all runs together. Pure: the time is given, in seconds on
any steady scale.
"""

from __future__ import annotations

from collections import deque

from bot.domain.traits import Rate


class Quotas:
    """Remembers when each limited tool was called; no more than its rate has calls."""

    def __init__(self) -> None:
        self._calls: dict[str, deque[float]] = {}

    def take(self, name: str, rate: Rate, *, now: float) -> float:
        """Take one call; 0 where it may be made, else the seconds until one may, and nothing is
        taken.
        """
        calls = self._calls.setdefault(name, deque())
        begin = now - rate.seconds
        while calls and calls[0] <= begin:
            calls.popleft()
        if len(calls) >= rate.calls:
            return calls[0] - begin  # compared and taken alike: never rounded to 0
        calls.append(now)
        return 0.0
