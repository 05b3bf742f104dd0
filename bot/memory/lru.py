"""The values used last, by key: the rest is let go. In C on the way of a message, where caches that
are written in Python take a dozen times as long.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


class LRU(OrderedDict[Key, Value]):
    """So many values at `most`: the one that was kept longest ago leaves first."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def keep(self, key: Key, value: Value) -> None:
        """Have it, as the last to leave."""
        self[key] = value
        self.move_to_end(key)
        if len(self) > self._most:
            self.popitem(last=False)


class WeightedLRU(LRU[Key, Value]):
    """The same of values that count as what they `weigh`."""

    def __init__(self, most: int, weigh: Callable[[Value], int]) -> None:
        super().__init__(most)
        self._weigh = weigh
        self._weight = 0

    def keep(self, key: Key, value: Value) -> None:
        """Have it, as the last to leave."""
        self.drop(key)
        self[key] = value
        self._weight += self._weigh(value)
        while self._weight > self._most:
            self._weight -= self._weigh(self.popitem(last=False)[1])

    def drop(self, key: Key) -> None:
        """Have it no more."""
        if key in self:
            self._weight -= self._weigh(self.pop(key))

    def clear(self) -> None:
        """Have nothing."""
        super().clear()
        self._weight = 0


class DefaultLRU(LRU[Key, Value]):
    """The same of values that `make` makes when their key is first looked up. To look one up is not
    to use it.
    """

    def __init__(self, most: int, make: Callable[[], Value]) -> None:
        super().__init__(most)
        self._make = make

    def __missing__(self, key: Key) -> Value:
        made = self._make()
        self.keep(key, made)
        return made

    def use(self, key: Key) -> Value:
        """The value, as the last to leave."""
        value = self[key]
        self.move_to_end(key)
        return value


class RecentKeys(LRU[Key, float]):
    """Keys, each for so many `seconds` after it was noted; `now` is a time that only grows."""

    def __init__(self, most: int, seconds: float, now: Callable[[], float]) -> None:
        super().__init__(most)
        self._seconds = seconds
        self._now = now

    def note(self, key: Key) -> None:
        """Have it from now on."""
        now = self._now()
        self.keep(key, now)
        while next(iter(self.values())) <= now - self._seconds:
            self.popitem(last=False)

    def knows(self, key: Key) -> bool:
        """Whether it was noted lately."""
        at = self.get(key)
        return at is not None and self._now() - at < self._seconds
