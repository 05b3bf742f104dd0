"""What was asked for last, by key: the rest is let go, and what is not there is made anew."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


class Latest(OrderedDict[Key, Value]):
    """So many values at `most`, each made by `make` when its key is first looked up.

    A message looks up its conversation a dozen times, and an `LRUCache` takes four calls each time.
    """

    def __init__(self, most: int, make: Callable[[], Value]) -> None:
        super().__init__()
        self._most = most
        self._make = make

    def __getitem__(self, key: Key) -> Value:
        value = self.get(key)
        if value is not None:
            self.move_to_end(key)
            return value
        made = self[key] = self._make()
        if len(self) > self._most:
            self.popitem(last=False)
        return made
