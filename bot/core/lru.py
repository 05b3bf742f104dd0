"""Bounded caches by key. On `OrderedDict`, in C: caches written in Python take twelve times as
long, and these are used for each message.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


class LRU(OrderedDict[Key, Value]):
    """At most `most` values: the one kept longest ago leaves first."""

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
    """An LRU whose values count as what they `weigh`."""

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
    """An LRU that makes a value by `make` when its key is first looked up; a look-up is no use."""

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
    """Keys, each for `seconds` after it was noted; `now` must never go back."""

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
