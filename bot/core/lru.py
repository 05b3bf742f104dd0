"""Bounded caches by key. Built on `OrderedDict`, in C: caches written in Python take twelve times
as long, and these are used for each message.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


class LRU(OrderedDict[Key, Value]):
    """At most `most` values; the one least recently kept is evicted first."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def keep(self, key: Key, value: Value) -> None:
        """Set a value, and make it the newest."""
        self[key] = value
        self.move_to_end(key)
        if len(self) > self._most:
            self.popitem(last=False)


class WeightedLRU(LRU[Key, Value]):
    """An LRU whose size is the sum of what its values `weigh`."""

    def __init__(self, most: int, weigh: Callable[[Value], int]) -> None:
        super().__init__(most)
        self._weigh = weigh
        self._weight = 0

    def keep(self, key: Key, value: Value) -> None:
        self.drop(key)
        self[key] = value
        self._weight += self._weigh(value)
        while self._weight > self._most:
            self._weight -= self._weigh(self.popitem(last=False)[1])

    def drop(self, key: Key) -> None:
        if key in self:
            self._weight -= self._weigh(self.pop(key))

    def clear(self) -> None:
        super().clear()
        self._weight = 0


class DefaultLRU(LRU[Key, Value]):
    """An LRU that creates a missing value by `make` when it is looked up; lookups do not renew a
    value.
    """

    def __init__(self, most: int, make: Callable[[], Value]) -> None:
        super().__init__(most)
        self._make = make

    def __missing__(self, key: Key) -> Value:
        made = self._make()
        self.keep(key, made)
        return made

    def use(self, key: Key) -> Value:
        """Look up a value, and make it the newest."""
        value = self[key]
        self.move_to_end(key)
        return value


class RecentKeys(LRU[Key, float]):
    """Keys that expire `seconds` after they were noted; `now` must never go back."""

    def __init__(self, most: int, seconds: float, now: Callable[[], float]) -> None:
        super().__init__(most)
        self._seconds = seconds
        self._now = now

    def note(self, key: Key) -> None:
        now = self._now()
        self.keep(key, now)
        while next(iter(self.values())) <= now - self._seconds:
            self.popitem(last=False)

    def knows(self, key: Key) -> bool:
        """Whether it was noted within the last `seconds`."""
        at = self.get(key)
        return at is not None and self._now() - at < self._seconds
