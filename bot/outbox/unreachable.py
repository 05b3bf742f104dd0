"""Places where QQ takes nothing of the bot and nothing it could do would change that: it was
removed from the group, or the person is no friend of it. No model is asked there until there is a
sign of life.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from msgspec import Struct

from bot.memory.lru import LRU
from frostagent.types.conversation import Conversation
from frostagent.types.ports import Clock

MAX_PLACES: Final = 5000
LONGEST: Final = 24 * 3600.0  # seconds after which a question may find out whether it is still so


class _Unreachable(Struct):
    reason: str
    until: float
    is_told: bool = False


class UnreachablePlaces:
    """The unreachable places, and why."""

    def __init__(self, *, clock: Clock) -> None:
        self._clock = clock
        self._places = LRU[Conversation, _Unreachable](MAX_PLACES)
        self._tell: Callable[[Conversation, str], None] | None = None

    def follow(self, tell: Callable[[Conversation, str], None]) -> None:
        """Have `tell` hear what is to be told of a place, and why; it neither waits nor raises."""
        self._tell = tell

    def begin(self, where: Conversation, reason: str) -> None:
        """QQ refused what was said there, and would refuse whatever comes next."""
        rest = self._places.get(where)
        is_told = rest is not None and rest.is_told
        self._places.keep(where, _Unreachable(reason, self._clock.monotonic() + LONGEST, is_told))

    def tell(self, where: Conversation) -> None:
        """Something was lost there, or a question held back: tell why, the first time."""
        rest = self._places.get(where)
        if rest is not None and not rest.is_told:
            rest.is_told = True
            if self._tell is not None:
                self._tell(where, rest.reason)

    def end(self, where: Conversation) -> None:
        """A sign of life: something arrived there, the bot joined, or an owner speaks there."""
        self._places.pop(where, None)

    def forget(self, account: int) -> None:
        """The account has connected: a sign of life may have been missed, and any question may find
        out. What was told stays so.
        """
        for where, rest in self._places.items():
            if where.platform_id == account:
                rest.until = -math.inf

    def holds_in(self, where: Conversation) -> bool:
        """Whether nothing is to be asked of a model there."""
        rest = self._places.get(where) if self._places else None
        return rest is not None and rest.until > self._clock.monotonic()
